// Plug-ins are linked against the MLIR of the Python bindings, which is not the
// one in bridge-opt: their options are not offered.
// RUN: not bridge-opt %s --load-pass-plugin=libmine.so 2>&1 | FileCheck %s
// RUN: bridge-opt --help | FileCheck %s --check-prefix=HELP
// CHECK: Unknown command line argument '--load-pass-plugin=libmine.so'
// HELP-NOT: -plugin
module {}
