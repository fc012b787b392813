//===- FusionResult.cpp - the outcome of a check or a fusion --------------===//

#include "Bridge/Analysis/FusionResult.h"

#include "Bridge/Analysis/Iteration.h"

using namespace mlir;
using namespace bridge;

void bridge::refuse(Operation *op, const Refusal &refusal) {
  Location location = op->getLoc();
  op->setLoc(getPlainLocation(op));
  InFlightDiagnostic remark = refuse(op, refusal.reason) << refusal.text;
  op->setLoc(location);
  for (const Note &note : refusal.notes)
    remark.attachNote(note.location) << note.text;
}
