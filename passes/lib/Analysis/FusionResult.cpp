//===- FusionResult.cpp - the outcome of a check or a fusion --------------===//

#include "Bridge/Analysis/FusionResult.h"

using namespace mlir;
using namespace bridge;

void bridge::refuse(Operation *op, const Refusal &refusal) {
  InFlightDiagnostic remark = refuse(op, refusal.reason) << refusal.text;
  for (const Note &note : refusal.notes)
    remark.attachNote(note.location) << note.text;
}
