//===- Combiners.cpp - the operations that add to a loop's state ----------===//

#include "Bridge/Analysis/Combiners.h"

#include "Bridge/IR/BridgeOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/APFloat.h"

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

SmallVector<TypedAttr> bridge::getNeutral(Operation *combiner) {
  if (auto neutral = arith::getNeutralElement(combiner))
    return {*neutral};
  auto combine = dyn_cast<CombineOp>(combiner);
  if (!combine)
    return {};
  Builder builder(combiner);
  auto type = dyn_cast<FloatType>(combine.getAcc().front().getType());
  if (!type)
    return {};
  if (combine.getKind() == CombineKind::welford)
    return SmallVector<TypedAttr>(3, builder.getZeroAttr(type));
  if (combine.getKind() == CombineKind::online_softmax)
    return {builder.getFloatAttr(
        type, APFloat::getInf(type.getFloatSemantics(), /*Negative=*/true))};
  return {};
}

std::optional<Combiners> bridge::getCombiners(AffineForOp loop) {
  Combiners combiners;
  SmallVector<Value> states(loop.getRegionIterArgs());
  while (!states.empty()) {
    Value state = states.pop_back_val();
    Operation *user = *state.user_begin();
    if (isa<AffineYieldOp>(user) || combiners.count(user))
      continue;
    SmallVector<OpOperand *> added;
    auto combine = dyn_cast<CombineOp>(user);
    unsigned first = combine ? combine.getAcc().size() : 0;
    for (OpOperand &operand : user->getOpOperands())
      if (combine ? operand.getOperandNumber() >= first
                  : operand.get() != state)
        added.push_back(&operand);
    auto neutral = getNeutral(user);
    if (neutral.empty() || neutral.size() > added.size())
      return std::nullopt;
    added.resize(neutral.size());
    combiners[user] = added;
    llvm::append_range(states, user->getResults());
  }
  return combiners;
}
