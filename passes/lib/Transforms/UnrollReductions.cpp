//===- UnrollReductions.cpp - unroll what the lanes of a row reduce -------===//

#include "Bridge/Analysis/KernelNests.h"
#include "Bridge/Analysis/Nest.h"
#include "Bridge/IR/BridgeOps.h"
#include "Bridge/Transforms/IndexSetSplit.h"
#include "Bridge/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "llvm/ADT/SetVector.h"

namespace bridge {
#define GEN_PASS_DEF_UNROLLREDUCTIONS
#include "Bridge/Transforms/Passes.h.inc"
} // namespace bridge

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

using Chains = SmallVector<SmallVector<AffineForOp>>;

/// Returns the loops that carry values below the loops of a nest. Empty if
/// there are none, or others beside them.
static Chains getReductions(Nest &nest) {
  Chains chains = getInnerChains(nest, nest.loops.size());
  auto carries = [](ArrayRef<AffineForOp> chain) {
    AffineForOp outermost = chain.front();
    return outermost.getNumIterOperands() != 0;
  };
  return llvm::all_of(chains, carries) ? chains : Chains();
}

/// Returns the loops of an elementwise nest inside the loops that `outer` has,
/// too. Empty if there are none.
static ArrayRef<AffineForOp> getElementwise(Nest &nest, Nest &outer) {
  size_t depth = outer.loops.size();
  if (nest.imperfectlyNested || nest.loops.size() <= depth ||
      getSharedDepth(nest, outer) != depth)
    return {};
  return ArrayRef(nest.loops).drop_front(depth);
}

/// True if the two nests have the same loops around what they reduce.
static bool haveSameLoops(Nest &a, Nest &b) {
  return a.loops.size() == b.loops.size() &&
         getSharedDepth(a, b) == a.loops.size();
}

/// Returns how often the chain executes those of its loads that count, at least
/// one an iteration; nothing if it is not known.
static std::optional<int64_t>
countLoads(ArrayRef<AffineForOp> chain,
           llvm::function_ref<bool(AffineLoadOp)> counts) {
  auto iterations = getVolume(chain);
  if (!getConstantExtents(chain) || !iterations)
    return std::nullopt;
  int64_t loads = 0;
  AffineForOp outermost = chain.front();
  outermost.walk([&](AffineLoadOp load) { loads += counts(load); });
  return std::max<int64_t>(loads, 1) * *iterations;
}

/// Returns the number of loads that the chain executes; nothing if it is not
/// known.
static std::optional<int64_t> countLoads(ArrayRef<AffineForOp> chain) {
  return countLoads(chain, [](AffineLoadOp) { return true; });
}

/// Returns the number of elements that an elementwise chain loads, without what
/// all its iterations have; nothing if it is not known.
static std::optional<int64_t> countElements(ArrayRef<AffineForOp> chain) {
  return countLoads(chain, [&](AffineLoadOp load) {
    return llvm::any_of(chain, [&](AffineForOp loop) {
      return llvm::is_contained(load.getMapOperands(), loop.getInductionVar());
    });
  });
}

/// True if the state is more than one value, which takes several instructions a
/// step, and all of the steps' values at a time.
static bool hasStructuredState(AffineForOp loop) {
  return loop.walk([](CombineOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// True if `reader` reduces the memrefs over lanes of `nest`: its loops are
/// outer ones of that.
static bool reducesOverLanes(Nest &reader, Nest &nest,
                             const llvm::SmallDenseSet<Value> &memrefs) {
  if (reader.loops.size() >= nest.loops.size() ||
      getSharedDepth(reader, nest) != reader.loops.size())
    return false;
  return llvm::any_of(getReductions(reader), [&](ArrayRef<AffineForOp> chain) {
    return loadsAny(chain.front(), memrefs);
  });
}

/// True if a later nest reduces over the lanes of this one what it stores, or
/// what nests over the same loops make of that, be it of several elements of a
/// lane.
static bool feedsRow(Nest &nest, ArrayRef<AffineForOp> roots) {
  llvm::SmallDenseSet<Value> memrefs;
  addStored(nest.root(), memrefs);
  for (AffineForOp root : roots) {
    if (!nest.root()->isBeforeInBlock(root) || !loadsAny(root, memrefs))
      continue;
    Nest reader = getNest(root);
    if (reducesOverLanes(reader, nest, memrefs))
      return true;
    if (haveSameLoops(reader, nest) || !getElementwise(reader, nest).empty())
      addStored(root, memrefs);
  }
  return false;
}

namespace {

struct UnrollReductions : bridge::impl::UnrollReductionsBase<UnrollReductions> {
  using Base::Base;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    SmallVector<AffineForOp> roots = getRoots(getOperation().getBody().front());
    llvm::SmallSetVector<Operation *, 4> chosen;
    for (AffineForOp root : roots) {
      Nest nest = getNest(root);
      if (!isUnrollable(nest) || !feedsRow(nest, roots))
        continue;
      auto beside = getNestsBeside(nest, roots);
      if (!llvm::all_of(beside,
                        [&](Nest &other) { return isUnrollable(other); }))
        continue;
      for (Nest &other : beside)
        chosen.insert(other.root());
    }
    SmallVector<SmallVector<AffineForOp>> elementwise =
        getElementwiseBeside(chosen.getArrayRef(), roots);
    for (Operation *root : chosen) {
      Nest nest = getNest(cast<AffineForOp>(root));
      for (ArrayRef<AffineForOp> chain : getReductions(nest))
        unroll(chain);
    }
    for (ArrayRef<AffineForOp> chain : elementwise)
      unroll(chain);
  }

private:
  /// True if a nest does nothing but short reductions in lanes which memory is
  /// along. Lanes of a symbolic number cannot be segments of a row: for them,
  /// memory may be along what each reduces, if that is a sector.
  bool isUnrollable(Nest &nest) {
    if (nest.loops.size() < 2)
      return false;
    auto lanes = getVolume(ArrayRef(nest.loops.back()));
    bool alongMemory = isAlongMemory(nest.loops.back());
    if (lanes && (!alongMemory || *lanes < minLanes))
      return false;
    Chains chains = getReductions(nest);
    return !chains.empty() &&
           llvm::all_of(chains, [&](ArrayRef<AffineForOp> chain) {
             auto loads = countLoads(chain);
             return loads && *loads <= getMostLoads(chain.front(), alongMemory);
           });
  }

  /// Returns the most loads of a reduction that a lane does by itself.
  int64_t getMostLoads(AffineForOp loop, bool alongMemory) {
    if (!alongMemory)
      return maxSectorLoads;
    return hasStructuredState(loop) ? maxStateLoads : maxLoads;
  }

  /// Returns the nests that reduce in the same loops as `nest`, itself among
  /// them, and are in a kernel with it or share elements: they stay together.
  static SmallVector<Nest> getNestsBeside(Nest &nest,
                                          ArrayRef<AffineForOp> roots) {
    SmallVector<Nest> beside;
    for (AffineForOp root : roots) {
      Nest other = getNest(root);
      bool same = root == nest.root() ||
                  (other.imperfectlyNested && haveSameLoops(nest, other) &&
                   (areInOneKernel(nest, other) || shareElements(nest, other)));
      if (same)
        beside.push_back(other);
    }
    return beside;
  }

  /// Returns the loops of elementwise nests of the kernels of chosen ones, over
  /// what those reduce in their loops: short ones of the same lanes.
  SmallVector<SmallVector<AffineForOp>>
  getElementwiseBeside(ArrayRef<Operation *> chosen,
                       ArrayRef<AffineForOp> roots) {
    SmallVector<SmallVector<AffineForOp>> found;
    for (AffineForOp root : roots) {
      Nest other = getNest(root);
      for (Operation *reducing : chosen) {
        Nest nest = getNest(cast<AffineForOp>(reducing));
        ArrayRef<AffineForOp> loops = getElementwise(other, nest);
        if (loops.empty() || !areInOneKernel(nest, other))
          continue;
        auto elements = countElements(loops);
        if (elements && *elements <= maxStateLoads)
          found.push_back(llvm::to_vector(loops));
        break;
      }
    }
    return found;
  }

  void unroll(ArrayRef<AffineForOp> chain) {
    for (AffineForOp loop : llvm::reverse(chain))
      if (succeeded(unrollToEnd(loop, loop.getConstantUpperBound())))
        ++numUnrolled;
    getOperation()->setAttr(kUnrolledReductionsAttr,
                            UnitAttr::get(&getContext()));
  }
};

} // namespace
