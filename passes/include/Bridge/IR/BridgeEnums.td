//===- BridgeEnums.td - enums of the bridge dialect --------*- tablegen -*-===//
//
// A case has one spelling in C++, in Python and in the textual IR: Inductor's
// name of the function. Numbers mean nothing outside one build.
//
//===----------------------------------------------------------------------===//

#ifndef BRIDGE_IR_BRIDGEENUMS
#define BRIDGE_IR_BRIDGEENUMS

include "mlir/IR/EnumAttr.td"

defvar bridgeSpecialFns = [
  "sigmoid", "relu", "sign", "signbit",
  // Gamma and error functions.
  "lgamma", "digamma", "erfinv", "erfcx", "gammainc", "gammaincc",
  // Bessel functions.
  "i0", "i0e", "i1", "i1e", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1",
  "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0",
  "modified_bessel_k1", "scaled_modified_bessel_k0",
  "scaled_modified_bessel_k1", "spherical_bessel_j0", "airy_ai",
  // Orthogonal polynomials.
  "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v",
  "chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he",
  "laguerre_polynomial_l", "legendre_polynomial_p",
  "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u",
  "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w",
  // Distributions and zeta functions.
  "log_ndtr", "ndtr", "ndtri", "zeta", "polygamma", "igamma", "igammac",
  // Two operands.
  "hypot", "nextafter", "ldexp", "remainder", "fmod",
  // Division as torch rounds it.
  "floordiv", "truncdiv", "int_truediv", "truediv", "div_rn",
  // Triton's libdevice, and arithmetic that must not be contracted.
  "libdevice_exp", "libdevice_log", "libdevice_sqrt", "libdevice_rsqrt",
  "libdevice_sin", "libdevice_cos", "libdevice_sigmoid", "libdevice_abs",
  "mul_rn",
  // Rounding to an integer type.
  "trunc_to_int", "floor_to_int", "ceil_to_int", "round_to_int",
  "identity",
  // Random numbers: of a seed and an offset, `randint64` also of its bounds.
  "rand", "randn", "randint64",
];

foreach i = !range(!size(bridgeSpecialFns)) in {
  defvar name = bridgeSpecialFns[i];
  def SpecialFn_#name : I32EnumAttrCase<name, i>;
}

def Bridge_SpecialFn
    : I32EnumAttr<"SpecialFn",
                  "an elementwise function that arith and math lack",
                  !foreach(name, bridgeSpecialFns,
                           !cast<I32EnumAttrCase>("SpecialFn_" # name))> {
  let cppNamespace = "::bridge";
}

def CombineKind_welford        : I32EnumAttrCase<"welford", 0>;
def CombineKind_argmax         : I32EnumAttrCase<"argmax", 1>;
def CombineKind_argmin         : I32EnumAttrCase<"argmin", 2>;
def CombineKind_online_softmax : I32EnumAttrCase<"online_softmax", 3>;
def CombineKind_any            : I32EnumAttrCase<"any", 4>;
def CombineKind_xor_sum        : I32EnumAttrCase<"xor_sum", 5>;
def CombineKind_prod           : I32EnumAttrCase<"prod", 6>;

def Bridge_CombineKind
    : I32EnumAttr<"CombineKind", "how a reduction step combines its values",
                  [CombineKind_welford, CombineKind_argmax, CombineKind_argmin,
                   CombineKind_online_softmax, CombineKind_any,
                   CombineKind_xor_sum, CombineKind_prod]> {
  let cppNamespace = "::bridge";
}

#endif // BRIDGE_IR_BRIDGEENUMS
