// The operator table; see schema.h and, for the notation, notation.h. Sorted by domain and name.
// Rows without notation only declare traits; their operands are pinned.
#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "parsimony/graph/operators/families.h"

namespace parsimony {
namespace {

using namespace operators;
using enum LinearKind;
using enum ResultType;
using enum Trait;
using enum ZeroBehaviour;

/// One bit each.
constexpr unsigned operands(auto... numbers) { return (0U | ... | (1U << numbers)); }

constexpr std::string_view kUnary = "x[..x] -> y[..x]";
constexpr std::string_view kBinary = "a[..x] b[..x] -> y[..x]";
constexpr std::string_view kDivision = "a[..x] b![..x] -> y[..x]";
constexpr std::string_view kVariadic = "a*[..x] -> y[..x]";
constexpr std::string_view kPool = "x[n c ..s] -> y[n c ..t]";
// Scales and zero points stand behind each operand, those of the result at the end.
constexpr std::string_view kQuantisedUnary = "x[..x] xs~[1] xz~[1]? ys~[1] yz~[1]? -> y[..x]";
constexpr std::string_view kQuantisedBinary =
    "a[..x] as~[1] az~[1]? b[..x] bs~[1] bz~[1]? ys~[1] yz~[1]? -> y[..x]";
constexpr std::string_view kQuantisedPool =
    "x[..x] xs~[1] xz~[1]? ys~[1] yz~[1]? -> y[..y] ; if channels_last = 1"
    "| x[n c ..s] xs~[1] xz~[1]? ys~[1] yz~[1]? -> y[n c ..t]";
constexpr std::string_view kSoftmax =
    "x[..a c ..b] -> y[..a c ..b] ; |..a| = attr axis -1 ; mixes c ; since 13"
    "| x[..a ..c] -> y[..a ..c] ; |..a| = attr axis 1 ; mixes c ; until 12";
// One scale per index of an axis, per block of them, or one for all.
constexpr std::string_view kQuantize =
    "x[..a c ..b] s~![c] z~[c]? -> y[..a c ..b] ; |..a| = attr axis 1"
    "| x[..a (c k) ..b] s![..a c ..b] z[..a c ..b]? -> y[..a (c k) ..b]"
    "; |..a| = attr axis 1 ; k = attr block_size 0 ; pin k"
    "| x[..x] s~![1] z~[1]? -> y[..x]";
constexpr std::string_view kDequantize =
    "x[..a c ..b] s~[c] z~[c]? -> y[..a c ..b] ; |..a| = attr axis 1"
    "| x[..a (c k) ..b] s[..a c ..b] z[..a c ..b]? -> y[..a (c k) ..b]"
    "; |..a| = attr axis 1 ; k = attr block_size 0 ; pin k"
    "| x[..x] s~[1] z~[1]? -> y[..x]";

// Codes of a few bits along k, in blocks that have a scale each and leave as a whole. Zero points
// may share bytes as well: then as many blocks as share one leave together.
constexpr std::string_view kMatMulOfBits =
    "a[..b (c k)] w[n c p] s[n c] z[n c]? g[]? bias[n]? -> y[..b n]"
    "; n = attr N 0 ; k = attr block_size 0 ; pin k p ; macs a n"
    "| a[..b (d 2 k)] w[n (d 2) p] s[n (d 2)] z[n d] g[]? bias[n]? -> y[..b n]"
    "; n = attr N 0 ; k = attr block_size 0 ; pin k p ; macs a n ; if bits ?= 4"
    "| a[..b (d 4 k)] w[n (d 4) p] s[n (d 4)] z[n d] g[]? bias[n]? -> y[..b n]"
    "; n = attr N 0 ; k = attr block_size 0 ; pin k p ; macs a n ; if bits = 2"
    "| a[..b i] w[n c p] s[n c] z[n q]? g[]? bias[n]? -> y[..b n]"
    "; n = attr N 0 ; pin i c p q ; macs a n"
    // one dimension for all scales
    "| a[..b i] w[n c p] s[(n c)] z[n q]? g[]? bias[n]? -> y[..b n]"
    "; n = attr N 0 ; pin i c p q ; macs a n"
    "| a[..b i] w[n c p] s[(n c)] z[(n q)] g[]? bias[n]? -> y[..b n]"
    "; n = attr N 0 ; pin i c p q ; macs a n";
// Experts have one inner width; gates and what they gate are side by side, or one after the other.
// Each token is multiplied with k of them, chosen by a softmax over all.
constexpr std::string_view kExperts =
    "x[..t h] r[q e] w1[e (i 2) h] b1[e (i 2)]? w2[e h i] b2[e h]? -> y[..t h]"
    "; mixes e ; least e k ; k = attr k 1 ; macs x i k + x i k + x i k"
    "; if activation_type = swiglu ; if swiglu_fusion = 1"
    "| x[..t h] r[q e] w1[e (2 i) h] b1[e (2 i)]? w2[e h i] b2[e h]? -> y[..t h]"
    "; mixes e ; least e k ; k = attr k 1 ; macs x i k + x i k + x i k"
    "; if activation_type = swiglu ; if swiglu_fusion = 2"
    "| x[..t h] r[q e] w1[e i h] b1[e i]? w2[e h i] b2[e h]? w3[e i h] b3[e i]? -> y[..t h]"
    "; mixes e ; least e k ; k = attr k 1 ; macs x i k + x i k + x i k"
    "| x[..t h] r[q e] w1[e i h] b1[e i]? w2[e h i] b2[e h]? w3[]? b3[]? -> y[..t h]"
    "; mixes e ; least e k ; k = attr k 1 ; macs x i k + x i k"
    "; role expert e";
// Mean and deviation, if they are asked for, have a 1 in place of each axis that was normalised.
constexpr std::string_view kLayerNormalisation =
    "x[..a c] gamma~[c] beta~[c]? -> y[..a c] m[..a 1]? v[..a 1]? ; |..a| = attr axis -1 ; mixes c"
    "| x[..a b c] gamma~[b c] beta~[b c]? -> y[..a b c] m[..a 1 1]? v[..a 1 1]?"
    "; |..a| = attr axis -1 ; mixes b c"
    "| x[..a ..c] gamma~[..c] beta~[..c]? -> y[..a ..c] ; |..a| = attr axis -1 ; mixes c";
constexpr std::string_view kCausalConvolution =
    "x[n c t] w[c 1 k] b[c]? p[n c s]? -> y[n c t] q[n c s]? ; macs n c t k";
// Decay is told for every element of a key, or once for each head.
constexpr std::string_view kLinearAttention =
    "q[n s (head per dim)] k[n s (head dim)] v[n s (head vdim)] past[n head dim vdim]?"
    "decay[n s (head dim)]? beta~[n s head]? -> y[n s (head per vdim)] state[n head dim vdim]?"
    "; head = attr kv_num_heads 0 ; pin n s ; macs n s head dim vdim + n s head per dim vdim"
    "| q[n s (head per dim)] k[n s (head dim)] v[n s (head vdim)] past[n head dim vdim]?"
    "decay[n s head]? beta~[n s head]? -> y[n s (head per vdim)] state[n head dim vdim]?"
    "; head = attr kv_num_heads 0 ; pin n s ; macs n s head dim vdim + n s head per dim vdim"
    "; role head head ; role head_dim dim ; role value_dim vdim";
constexpr std::string_view kFakeQuantize = "x[..x] s~![..x] z~[..x] bits~![..x] -> y[..x]";
constexpr std::string_view kFakeTruncate =
    "x[..x] s~![..x] z~[..x] from~![..x] to~![..x] -> y[..x]"
    "| x[..x] s~![..x] z~[..x] from~![..x] ys~![..x] to~![..x] -> y[..x]";

// Plain layers: floating point, with nothing applied after the sum.
constexpr Linear kPlainConvolution = {
    .kind = kConvolution, .weights = operands(1), .bias = 2, .plain = true, .layer = "Conv"};
constexpr Linear kPlainTransposedConvolution = {.kind = kTransposedConvolution,
                                                .weights = operands(1),
                                                .bias = 2,
                                                .plain = true,
                                                .layer = "ConvTranspose"};
constexpr Linear kPlainGemm = {
    .kind = kMatrixProduct, .weights = operands(0, 1), .bias = 2, .plain = true, .layer = "Gemm"};
constexpr Linear kPlainMatMul = {
    .kind = kMatrixProduct, .weights = operands(0, 1), .plain = true, .layer = "MatMul"};

// clang-format off
constexpr auto kOperators = std::to_array<OpSchema>({
    {.op = "Abs", .line = kUnary},
    {.op = "Acos", .line = kUnary, .zero = kConstant},
    {.op = "Acosh", .line = kUnary, .zero = kUndefined},
    {.op = "Add", .line = kBinary, .traits = kAdds | kHomogeneous},
    {.op = "Affine", .line = kUnary, .zero = kConstant},
    {.op = "AffineGrid", .infer = infer_affine_grid},
    {.op = "And", .line = kBinary, .zero = kProduct, .result = kBool},
    {.op = "ArgMax", .zero = kConstant, .traits = kChooses, .chosen = 0, .result = kInt64,
     .infer = infer_arg, .factor = factor_along_axis},
    {.op = "ArgMin", .zero = kConstant, .traits = kChooses, .chosen = 0, .result = kInt64,
     .infer = infer_arg, .factor = factor_along_axis},
    {.op = "Asin", .line = kUnary},
    {.op = "Asinh", .line = kUnary},
    {.op = "Atan", .line = kUnary},
    {.op = "Atanh", .line = kUnary},
    {.op = "Attention",
     .line = "q[n s (head per dim)] k[n l (head dim)] v[n l (head vdim)] m~[n (head per) s t]?"
             "pk[n head p dim] pv[n head p vdim] len[n]?"
             "-> y[n s (head per vdim)] nk[n head t dim]? nv[n head t vdim]?"
             "; head = attr kv_num_heads 0 ; pin n s l p t"
             "; macs n s l head per dim + n s l head per vdim"
             "| q[n (head per) s dim] k[n head l dim] v[n head l vdim] m~[n (head per) s t]?"
             "pk[n head p dim] pv[n head p vdim] len[n]?"
             "-> y[n (head per) s vdim] nk[n head t dim]? nv[n head t vdim]?"
             "; pin n s l p t ; macs n s l head per dim + n s l head per vdim"
             "| q[n s (head per dim)] k[n l (head dim)] v[n l (head vdim)] m~[n (head per) s l]?"
             "pk[]? pv[]? len[n]? -> y[n s (head per vdim)] nk[n head l dim]? nv[n head l vdim]?"
             "; head = attr kv_num_heads 0 ; pin n s l"
             "; macs n s l head per dim + n s l head per vdim"
             "| q[n (head per) s dim] k[n head l dim] v[n head l vdim] m~[n (head per) s l]?"
             "pk[]? pv[]? len[n]? -> y[n (head per) s vdim] nk[n head l dim]? nv[n head l vdim]?"
             "; pin n s l ; macs n s l head per dim + n s l head per vdim"
             "; role head head ; role head_dim dim ; role value_dim vdim",
     .zero = kProduct, .traits = kAttends, .scale = "scale",
     .infer = infer_attention, .patch = patch_attention},
    {.op = "AveragePool", .line = kPool, .infer = infer_pool},
    {.op = "BatchNormalization",
     .line = "x[n ..c] gamma[..c] beta[..c] mean[..c] var[..c] -> y[n ..c] ; if spatial = 0"
             "| x[n c ..s] gamma[c] beta[c] mean[c] var[c] -> y[n c ..s] a[c]? b[c]? d[c]? e[c]?",
     .zero = kNormalised, .norm = {.gain = 1, .shift = 2, .statistics = 3}},
    {.op = "Bernoulli", .line = kUnary, .traits = kDraws},
    {.op = "BitCast", .line = kUnary, .traits = kChooses},
    {.op = "BitShift", .line = kBinary, .zero = kFirst},
    {.op = "BitwiseAnd", .line = kBinary, .zero = kProduct},
    {.op = "BitwiseNot", .line = kUnary, .zero = kConstant},
    {.op = "BitwiseOr", .line = kBinary},
    {.op = "BitwiseXor", .line = kBinary},
    {.op = "BlackmanWindow", .zero = kConstant},
    {.op = "Cast", .line = kUnary, .traits = kCopies | kHomogeneous | kChooses},
    {.op = "CastLike", .zero = kFirst, .traits = kChooses | kHomogeneous, .type_from = 1,
     .result = kOfSecond, .infer = infer_same, .factor = factor_cast_like},
    {.op = "CausalConvWithState", .line = kCausalConvolution,
     .linear = {.kind = kConvolution, .weights = operands(1), .bias = 2, .layer = "Conv"},
     .infer = infer_causal_conv},
    {.op = "Ceil", .line = kUnary, .traits = kChooses},
    {.op = "Celu", .line = kUnary},
    {.op = "CenterCropPad", .infer = infer_center_crop_pad, .factor = factor_center_crop_pad},
    {.op = "Clip", .line = "x[..x] min[..a]? max[..b]? -> y[..x]", .zero_of = zero_of_clip},
    {.op = "Col2Im", .infer = infer_col_to_im, .factor = factor_col_to_im},
    {.op = "Compress", .infer = infer_compress, .factor = factor_compress},
    {.op = "Concat", .traits = kHomogeneous | kRearranges,
     .infer = infer_concat, .factor = factor_concat},
    {.op = "ConcatFromSequence", .infer = infer_concat_from_sequence,
     .factor = factor_concat_from_sequence},
    {.op = "ConstantOfShape", .traits = kFills,
     .infer = infer_constant_of_shape, .factor = factor_constant_of_shape,
     .patch = patch_constant_of_shape, .zero_of = zero_of_constant_of_shape},
    {.op = "Conv",
     .line = "x[n (g i) ..s] w[(g o) i ..k] b[(g o)]? -> y[n (g o) ..s]"
             "; g = attr group 1 ; macs w y ; if kernel_shape = 1 ; if strides ?= 1 ; if pads ?= 0"
             "| x[n (g i) ..s] w[(g o) i ..k] b[(g o)]? -> y[n (g o) ..t]"
             "; g = attr group 1 ; macs w y ; role group g",
     .zero = kProduct, .linear = kPlainConvolution, .infer = infer_conv},
    {.op = "ConvInteger",
     .line = "x[n (g i) ..s] w[(g o) i ..k] xz~[1]? wz~[(g o)]? -> y[n (g o) ..t]"
             "; g = attr group 1 ; macs w y ; role group g",
     .zero = kProduct, .linear = {.kind = kConvolution, .weights = operands(1), .layer = "Conv"},
     .integers = {.operand = 1, .zero_point = 3}, .data = {.operand = 0, .zero_point = 2}, .infer = infer_conv},
    {.op = "ConvTranspose",
     .line = "x[n (g i) ..s] w[(g i) o ..k] b[(g o)]? -> y[n (g o) ..t]"
             "; g = attr group 1 ; macs w x ; role group g",
     .zero = kProduct, .linear = kPlainTransposedConvolution, .infer = infer_conv_transpose},
    {.op = "Cos", .line = kUnary, .zero = kConstant},
    {.op = "Cosh", .line = kUnary, .zero = kConstant},
    {.op = "Crop", .line = "x[n c ..s] -> y[n c ..t]", .infer = infer_crop},
    {.op = "CumProd", .zero = kConstant, .infer = infer_same, .factor = factor_cum_sum},
    {.op = "CumSum", .infer = infer_same, .factor = factor_cum_sum},
    {.op = "DFT", .infer = infer_dft, .factor = factor_dft},
    {.op = "DeformConv",
     .line = "x[n (g i) ..s] w[(g o) i ..k] p[n q ..t] b[(g o)]? m[n r ..t]? -> y[n (g o) ..t]"
             "; g = attr group 1 ; pin q r ; macs w y ; if offset_group = 1"
             "| x[n (d i) ..s] w[o (d i) ..k] p[n q ..t] b[o]? m[n r ..t]? -> y[n o ..t]"
             "; d = attr offset_group 1 ; pin d q r ; macs w y ; role group g",
     .zero = kProduct,
     .linear = {.kind = kConvolution, .weights = operands(1), .bias = 3, .layer = "Conv"}},
    {.op = "DepthToSpace",
     .line = "x[n (c r s) h w] -> y[n c (h r) (w s)]"
             "; r = attr blocksize 1 ; s = attr blocksize 1 ; pin r s ; if mode = CRD"
             "| x[n (r s c) h w] -> y[n c (h r) (w s)]"
             "; r = attr blocksize 1 ; s = attr blocksize 1 ; pin r s"},
    {.op = "DequantizeLinear", .line = kDequantize, .zero = kQuotient,
     .integers = {.operand = 0, .scale = 1, .zero_point = 2}, .traits = kReadsIntegers,
     .infer = infer_blocks, .factor = factor_blocks},
    {.op = "Det", .line = "x[..b m n] -> y[..b]", .zero = kConstant},
    {.op = "Div", .line = kDivision, .zero = kQuotient, .traits = kDivides | kHomogeneous},
    {.op = "Dropout", .line = "x[..x] ratio[]? mode[]? -> y[..x] mask[..x]?", .zero = kFirst,
     .traits = kHomogeneous, .draws_if = 2},
    {.op = "DynamicQuantizeLinear", .line = "x[..x] -> y[..x] s[] z[]", .zero = kQuotient},
    {.op = "Einsum", .zero = kProduct,
     .linear = {.kind = kContraction, .weights = operands(0, 1), .layer = "Einsum"},
     .traits = kSums | kPairs,
     .infer = infer_einsum, .factor = factor_einsum, .line_of = line_of_einsum},
    {.op = "Elu", .line = kUnary},
    {.op = "Equal", .line = kBinary, .zero = kConstant, .traits = kChooses | kMatches, .result = kBool,
     .factor = factor_matches, .patch = patch_matches},
    {.op = "Erf", .line = kUnary},
    {.op = "Exp", .line = kUnary, .zero = kConstant},
    {.op = "Expand", .traits = kHomogeneous,
     .infer = infer_expand, .factor = factor_expand, .patch = patch_expand,
     .zero_of = zero_of_expand},
    {.op = "EyeLike", .zero = kConstant, .infer = infer_same},
    {.op = "Flatten", .traits = kHomogeneous | kRearranges,
     .infer = infer_flatten, .factor = factor_reshape},
    {.op = "Floor", .line = kUnary, .traits = kChooses},
    {.op = "GRU",
     .line = "x[n t i] w[d (3 h) i] r[d (3 h) h] b[d (6 h)]? l[n]? h0[n d h]? -> y[n t d h] yh[n d h]"
             "; h = attr hidden_size 0 ; pin d ; macs x w + t n r ; if layout = 1"
             "| x[t n i] w[d (3 h) i] r[d (3 h) h] b[d (6 h)]? l[n]? h0[d n h]? -> y[t d n h] yh[d n h]"
             "; h = attr hidden_size 0 ; pin d ; macs x w + t n r",
     .linear = {.kind = kRecurrence, .weights = operands(1, 2), .bias = 3, .layer = "GRU"},
     .recurrence = {.lengths = 4, .initial = 5, .resets = true},
     .zero_of = zero_of_gru},
    {.op = "Gather", .linear = {.kind = kLookup, .weights = operands(0), .layer = "Gather"},
     .traits = kHomogeneous, .places = 1, .infer = infer_gather, .factor = factor_gather, .patch = patch_gather},
    {.op = "GatherElements", .zero = kConstant, .places = 1, .infer = infer_gather_elements,
     .factor = factor_gather_elements},
    {.op = "GatherND", .infer = infer_gather_nd, .factor = factor_gather_nd},
    {.op = "Gelu", .line = kUnary},
    {.op = "Gemm",
     .line = "a[m k] b[k n] c~[m n]? -> y[m n] ; swap a transA ; swap b transB ; macs b y",
     .zero = kProduct, .linear = kPlainGemm, .traits = kSums, .scale = "alpha"},
    {.op = "GlobalAveragePool", .line = kPool, .infer = infer_global_pool},
    {.op = "GlobalLpPool", .line = kPool, .infer = infer_global_pool},
    {.op = "GlobalMaxPool", .line = kPool, .infer = infer_global_pool},
    {.op = "Greater", .line = kBinary, .zero = kConstant, .traits = kChooses, .result = kBool},
    {.op = "GreaterOrEqual", .line = kBinary, .zero = kConstant,
     .traits = kChooses, .result = kBool},
    {.op = "GridSample", .line = "x[n c ..s] grid[n ..t q] -> y[n c ..t]"},
    {.op = "GroupNormalization",
     .line = "x[n (g c) ..s] gamma[(g c)] beta[(g c)] -> y[n (g c) ..s]"
             "; g = attr num_groups 1 ; mixes c s ; since 21"
             "| x[n (g c) ..s] gamma[g] beta[g] -> y[n (g c) ..s]"
             "; g = attr num_groups 1 ; mixes c s",
     .norm = {.gain = 1, .shift = 2}},
    {.op = "HammingWindow", .zero = kConstant},
    {.op = "HannWindow", .zero = kConstant},
    {.op = "HardSigmoid", .line = kUnary, .zero = kConstant, .traits = kLikelihoods},
    {.op = "HardSwish", .line = kUnary},
    {.op = "Hardmax", .line = kSoftmax, .zero = kConstant, .traits = kChooses | kOutcomes},
    {.op = "Identity", .line = kUnary, .traits = kCopies | kHomogeneous},
    {.op = "If", .zero = kConstant, .infer = infer_control, .factor = factor_control},
    {.op = "ImageDecoder", .zero = kConstant, .infer = infer_image_decoder},
    {.op = "ImageScaler", .line = "x[n c ..s] -> y[n c ..s] ; pin c", .zero = kConstant},
    {.op = "InstanceNormalization", .line = "x[n c ..s] gamma[c] beta[c] -> y[n c ..s] ; mixes s",
     .norm = {.gain = 1, .shift = 2}},
    {.op = "IsInf", .line = kUnary, .zero = kConstant, .result = kBool},
    {.op = "IsNaN", .line = kUnary, .zero = kConstant, .result = kBool},
    {.op = "LRN", .line = "x[n c ..s] -> y[n c ..s] ; mixes c"},
    {.op = "LSTM",
     .line = "x[n t i] w[d (4 h) i] r[d (4 h) h] b[d (8 h)]? l[n]? h0[n d h]? c0[n d h]? p[d (3 h)]?"
             "-> y[n t d h] yh[n d h] yc[n d h]"
             "; h = attr hidden_size 0 ; pin d ; macs x w + t n r ; if layout = 1"
             "| x[t n i] w[d (4 h) i] r[d (4 h) h] b[d (8 h)]? l[n]? h0[d n h]? c0[d n h]? p[d (3 h)]?"
             "-> y[t d n h] yh[d n h] yc[d n h]"
             "; h = attr hidden_size 0 ; pin d ; macs x w + t n r",
     .linear = {.kind = kRecurrence, .weights = operands(1, 2), .bias = 3, .layer = "LSTM"},
     .recurrence = {.lengths = 4, .initial = 5},
     .zero_of = zero_of_lstm},
    {.op = "LayerNormalization", .line = kLayerNormalisation, .norm = {.gain = 1, .shift = 2}},
    {.op = "LeakyRelu", .line = kUnary},
    {.op = "Less", .line = kBinary, .zero = kConstant, .traits = kChooses, .result = kBool},
    {.op = "LessOrEqual", .line = kBinary, .zero = kConstant, .traits = kChooses, .result = kBool},
    {.op = "LinearAttention", .line = kLinearAttention, .zero = kProduct, .traits = kAttends,
     .scale = "scale", .patch = patch_attention},
    {.op = "Log", .line = kUnary, .zero = kUndefined},
    {.op = "LogSoftmax", .line = kSoftmax, .zero = kConstant, .traits = kOutcomes},
    {.op = "Loop", .zero = kConstant, .infer = infer_control, .factor = factor_control},
    {.op = "LpNormalization",
     .line = "x[..a c ..b] -> y[..a c ..b] ; |..a| = attr axis -1 ; mixes c"},
    {.op = "LpPool", .line = kPool, .infer = infer_pool},
    {.op = "MatMul",
     .line = "a[k] b[k] -> y[] ; macs b y"
             "| a[k] b[..b k n] -> y[..b n] ; macs b y"
             "| a[..b m k] b[k] -> y[..b m] ; macs b y"
             "| a[..b m k] b[..b k n] -> y[..b m n] ; macs b y",
     .zero = kProduct, .linear = kPlainMatMul, .traits = kSums | kPairs},
    {.op = "MatMulInteger", .line = "a[..b m k] b[..b k n] az~[1]? bz~[n]? -> y[..b m n] ; macs b y",
     .zero = kProduct,
     .linear = {.kind = kMatrixProduct, .weights = operands(0, 1), .layer = "MatMul"},
     .integers = {.operand = 1, .zero_point = 3}, .data = {.operand = 0, .zero_point = 2}},
    {.op = "Max", .line = kVariadic},
    {.op = "MaxPool", .line = "x[n c ..s] -> y[n c ..t] indices[n c ..t]?",
     .result = kSecondIsInt64, .infer = infer_pool},
    {.op = "MaxRoiPool", .line = "x[n c ..s] rois[r q] -> y[r c ..t]",
     .infer = infer_max_roi_pool},
    {.op = "MaxUnpool", .line = "x[n c ..s] at[n c ..s] size[..r]? -> y[n c ..t]",
     .infer = infer_max_unpool},
    {.op = "Mean", .line = kVariadic},
    {.op = "MeanVarianceNormalization", .infer = infer_same, .factor = factor_mean_variance},
    {.op = "MelWeightMatrix", .zero = kConstant},
    {.op = "Min", .line = kVariadic},
    {.op = "Mish", .line = kUnary},
    {.op = "Mod", .line = kDivision, .zero = kQuotient},
    {.op = "Mul", .line = kBinary, .zero = kProduct, .traits = kMultiplies | kHomogeneous},
    {.op = "Multinomial", .zero = kConstant, .traits = kDraws},
    {.op = "Neg", .line = kUnary, .traits = kHomogeneous},
    {.op = "NegativeLogLikelihoodLoss", .zero = kConstant},
    {.op = "NonMaxSuppression", .traits = kChooses, .result = kInt64,
     .infer = infer_non_max_suppression},
    {.op = "NonZero", .traits = kChooses, .result = kInt64, .infer = infer_non_zero},
    {.op = "Not", .line = kUnary, .zero = kConstant, .result = kBool},
    {.op = "OneHot", .zero = kConstant, .places = 0, .infer = infer_one_hot,
     .factor = factor_one_hot, .patch = patch_one_hot},
    {.op = "Optional", .line = kUnary},
    {.op = "OptionalGetElement", .line = kUnary},
    {.op = "OptionalHasElement", .zero = kConstant, .result = kBool},
    {.op = "Or", .line = kBinary, .result = kBool},
    {.op = "PRelu", .line = "x[..x] slope~[..x] -> y[..x]", .zero = kFirst},
    {.op = "Pad", .traits = kHomogeneous | kPads,
     .infer = infer_pad, .factor = factor_pad, .patch = patch_pad, .zero_of = zero_of_pad},
    {.op = "Pow", .line = kDivision, .zero_of = zero_of_pow},
    {.op = "QLinearConv",
     .line = "x[n (g i) ..s] xs~[1] xz~[1] w[(g o) i ..k] ws~[(g o)] wz~[(g o)] ys~[1] yz~[1] b[(g o)]?"
             "-> y[n (g o) ..t] ; g = attr group 1 ; macs w y ; role group g",
     .zero = kProduct,
     .linear = {.kind = kConvolution, .weights = operands(3), .bias = 8, .layer = "Conv"},
     .integers = {.operand = 3, .scale = 4, .zero_point = 5},
     .data = {.operand = 0, .scale = 1, .zero_point = 2}, .traits = kReadsIntegers,
     .infer = infer_conv},
    {.op = "QLinearMatMul",
     .line = "a[..b m k] as~[1] az~[1] b[..b k n] bs~[n] bz~[n] ys~[1] yz~[1] -> y[..b m n] ; macs b y",
     .zero = kProduct,
     .linear = {.kind = kMatrixProduct, .weights = operands(3), .layer = "MatMul"},
     .integers = {.operand = 3, .scale = 4, .zero_point = 5},
     .data = {.operand = 0, .scale = 1, .zero_point = 2}},
    {.op = "QuantizeLinear", .line = kQuantize, .zero = kQuotient,
     .integers = {.operand = 0, .scale = 1, .zero_point = 2}, .traits = kChooses | kReadsIntegers,
     .infer = infer_blocks, .factor = factor_blocks},
    {.op = "RMSNormalization",
     .line = "x[..a ..c] gamma~[..c] -> y[..a ..c] ; |..a| = attr axis -1 ; mixes c",
     .norm = {.gain = 1}},
    {.op = "RNN",
     .line = "x[n t i] w[d h i] r[d h h] b[d (2 h)]? l[n]? h0[n d h]? -> y[n t d h] yh[n d h]"
             "; h = attr hidden_size 0 ; pin d ; macs x w + t n r ; if layout = 1"
             "| x[t n i] w[d h i] r[d h h] b[d (2 h)]? l[n]? h0[d n h]? -> y[t d n h] yh[d n h]"
             "; h = attr hidden_size 0 ; pin d ; macs x w + t n r",
     .linear = {.kind = kRecurrence, .weights = operands(1, 2), .bias = 3, .layer = "RNN"},
     .recurrence = {.lengths = 4, .initial = 5},
     .zero_of = zero_of_rnn},
    {.op = "RandomNormal", .zero = kConstant, .traits = kDraws},
    {.op = "RandomNormalLike", .line = kUnary, .zero = kConstant, .traits = kDraws},
    {.op = "RandomUniform", .zero = kConstant, .traits = kDraws},
    {.op = "RandomUniformLike", .line = kUnary, .zero = kConstant, .traits = kDraws},
    {.op = "Range", .zero = kConstant},
    {.op = "Reciprocal", .line = kUnary, .zero = kUndefined},
    {.op = "ReduceL1", .traits = kSums | kReduces, .infer = infer_reduce, .factor = factor_sum},
    {.op = "ReduceL2", .traits = kSums | kReduces, .infer = infer_reduce, .factor = factor_sum},
    {.op = "ReduceLogSum", .zero = kUndefined, .traits = kReduces,
     .infer = infer_reduce, .factor = factor_sum},
    {.op = "ReduceLogSumExp", .zero = kConstant, .traits = kReduces,
     .infer = infer_reduce, .factor = factor_mean},
    {.op = "ReduceMax", .traits = kReduces, .infer = infer_reduce, .factor = factor_mean},
    {.op = "ReduceMean", .traits = kReduces, .infer = infer_reduce, .factor = factor_mean},
    {.op = "ReduceMin", .traits = kReduces, .infer = infer_reduce, .factor = factor_mean},
    {.op = "ReduceProd", .traits = kReduces, .infer = infer_reduce, .factor = factor_mean},
    {.op = "ReduceSum", .traits = kSums | kReduces, .infer = infer_reduce, .factor = factor_sum},
    {.op = "ReduceSumSquare", .traits = kSums | kReduces,
     .infer = infer_reduce, .factor = factor_sum},
    {.op = "RegexFullMatch", .zero = kConstant, .result = kBool},
    {.op = "Relu", .line = kUnary, .traits = kRectifies},
    {.op = "Reshape", .traits = kHomogeneous | kRearranges,
     .infer = infer_reshape, .factor = factor_reshape, .patch = patch_reshape},
    {.op = "Resize", .traits = kRescales,
     .infer = infer_resize, .factor = factor_resize, .patch = patch_resize},
    {.op = "ReverseSequence", .infer = infer_same, .factor = factor_reverse_sequence},
    {.op = "RoiAlign",
     .line = "x[n c ..s] rois[r q] image[r] -> y[r c h w]"
             " ; h = attr output_height 1 ; w = attr output_width 1"},
    {.op = "RotaryEmbedding",
     .line = "x[n head s (half 2)] cos[..c half] sin[..c half] at[..p]? -> y[n head s (half 2)]"
             "; pin n s c ; if interleaved = 1"
             "| x[n s (head half 2)] cos[..c half] sin[..c half] at[..p]? -> y[n s (head half 2)]"
             "; head = attr num_heads 0 ; pin n s c ; if interleaved = 1"
             "| x[n head s (2 half)] cos[..c half] sin[..c half] at[..p]? -> y[n head s (2 half)]"
             "; pin n s c"
             "| x[n s (head 2 half)] cos[..c half] sin[..c half] at[..p]? -> y[n s (head 2 half)]"
             "; head = attr num_heads 0 ; pin n s c"
             "; role head head ; role rotary half",
     .zero = kFirst, .infer = infer_rotary, .factor = factor_rotary},
    {.op = "Round", .line = kUnary, .traits = kChooses},
    {.op = "STFT", .zero = kConstant, .infer = infer_stft},
    {.op = "Scan", .zero = kConstant, .infer = infer_control, .factor = factor_control},
    {.op = "Scatter", .zero = kConstant, .places = 1, .infer = infer_same, .factor = factor_scatter_elements},
    {.op = "ScatterElements", .zero = kConstant, .traits = kScatters, .places = 1, .infer = infer_same,
     .factor = factor_scatter_elements},
    {.op = "ScatterND", .traits = kScatters, .infer = infer_same, .factor = factor_scatter_nd, .patch = patch_scatter_nd},
    {.op = "Selu", .line = kUnary},
    {.op = "SequenceAt", .line = "x[..x] at[] -> y[..x]", .traits = kTakesElement},
    {.op = "SequenceConstruct", .infer = infer_sequence_construct, .factor = factor_sequence},
    {.op = "SequenceEmpty", .infer = infer_sequence_empty},
    {.op = "SequenceErase", .line = "x[..x] at[]? -> y[..x]", .infer = infer_sequence_erase},
    {.op = "SequenceInsert", .infer = infer_sequence_insert, .factor = factor_sequence},
    {.op = "SequenceLength", .zero = kConstant, .result = kInt64, .infer = infer_sequence_length},
    {.op = "SequenceMap", .zero = kConstant},
    {.op = "Shape", .traits = kReadsSizes, .result = kInt64},
    {.op = "Shrink", .line = kUnary, .zero = kConstant},
    {.op = "Sigmoid", .line = kUnary, .zero = kConstant, .traits = kLikelihoods},
    {.op = "Sign", .line = kUnary, .traits = kChooses},
    {.op = "SimplifiedLayerNormalization",
     .line = "x[..a c] gamma~[c] -> y[..a c] v[..a 1]? ; |..a| = attr axis -1 ; mixes c"
             "| x[..a ..c] gamma~[..c] -> y[..a ..c] ; |..a| = attr axis -1 ; mixes c",
     .norm = {.gain = 1}},
    {.op = "Sin", .line = kUnary},
    {.op = "Sinh", .line = kUnary},
    {.op = "Size", .traits = kReadsSizes, .result = kInt64},
    {.op = "Slice", .traits = kTakesApart | kHomogeneous,
     .infer = infer_slice, .factor = factor_slice, .patch = patch_slice},
    {.op = "Softmax", .line = kSoftmax, .zero = kConstant, .traits = kProbabilities | kOutcomes},
    {.op = "SoftmaxCrossEntropyLoss", .zero = kConstant},
    {.op = "Softplus", .line = kUnary, .zero = kConstant},
    {.op = "Softsign", .line = kUnary},
    {.op = "SpaceToDepth",
     .line = "x[n c (h r) (w s)] -> y[n (r s c) h w]"
             "; r = attr blocksize 1 ; s = attr blocksize 1 ; pin r s"},
    {.op = "Split", .traits = kTakesApart | kHomogeneous,
     .infer = infer_split, .factor = factor_split, .patch = patch_split},
    {.op = "SplitToSequence", .infer = infer_split_to_sequence,
     .factor = factor_split_to_sequence},
    {.op = "Sqrt", .line = kUnary},
    {.op = "Squeeze", .traits = kHomogeneous | kRearranges,
     .infer = infer_squeeze, .factor = factor_reshape, .patch = patch_squeeze},
    {.op = "StringConcat", .zero = kConstant},
    {.op = "StringNormalizer", .zero = kConstant},
    {.op = "StringSplit", .zero = kConstant},
    {.op = "Sub", .line = kBinary, .traits = kHomogeneous},
    {.op = "Sum", .line = kVariadic},
    {.op = "SwiGLU", .line = kBinary, .zero = kProduct},
    {.op = "Swish", .line = kUnary},
    {.op = "Tan", .line = kUnary},
    {.op = "Tanh", .line = kUnary},
    {.op = "TensorScatter", .infer = infer_same, .factor = factor_tensor_scatter},
    {.op = "TfIdfVectorizer", .zero = kConstant},
    {.op = "ThresholdedRelu", .line = kUnary},
    {.op = "Tile", .traits = kHomogeneous, .infer = infer_tile, .factor = factor_tile},
    {.op = "TopK", .zero = kConstant, .traits = kChooses, .chosen = 1, .result = kSecondIsInt64,
     .infer = infer_top_k, .factor = factor_along_last},
    {.op = "Transpose", .traits = kPermutes | kHomogeneous,
     .infer = infer_transpose, .factor = factor_transpose},
    {.op = "Trilu", .infer = infer_same, .factor = factor_trilu},
    {.op = "Unique", .zero = kConstant, .traits = kChooses, .infer = infer_unique},
    {.op = "Unsqueeze", .traits = kHomogeneous | kRearranges,
     .infer = infer_unsqueeze, .factor = factor_reshape},
    {.op = "Upsample", .traits = kRescales, .infer = infer_resize, .factor = factor_resize},
    {.op = "Where", .line = "c[..x] a[..x] b[..x] -> y[..x]", .zero = kChoice, .result = kOfSecond},
    {.op = "Xor", .line = kBinary, .result = kBool},
    {.op = "LabelEncoder", .line = kUnary, .zero = kConstant, .domain = "ai.onnx.ml"},
    // Operators that ONNX Runtime has and ONNX has not, or had later.
    {.op = "Attention",
     .line = "x[n s i] w[i (3 head dim)] b[(3 head dim)]? m[..m]? past[2 n head p dim] ab~[n head s t]?"
             "pl[]? -> y[n s (head dim)] present[2 n head t dim]?"
             "; head = attr num_heads 0 ; pin n s t p dim ; macs x w + n s s head dim + n s s head dim"
             "; if do_rotary = 1"
             "| x[n s i] w[i (3 head dim)] b[(3 head dim)]? m[..m]? past[]? ab~[n head s s]?"
             "-> y[n s (head dim)] present[2 n head s dim]?"
             "; head = attr num_heads 0 ; pin n s dim"
             "; macs x w + n s s head dim + n s s head dim ; if do_rotary = 1"
             "| x[n s i] w[i (3 head dim)] b[(3 head dim)]? m[..m]? past[]? ab~[n head s s]?"
             "-> y[n s (head dim)] present[2 n head s dim]?"
             "; head = attr num_heads 0 ; pin n s ; macs x w + n s s head dim + n s s head dim"
             "| x[n s i] w[i (3 head dim)] b[(3 head dim)]? m[..m]? past[2 n head p dim] ab~[n head s t]?"
             "pl[]? -> y[n s (head dim)] present[2 n head t dim]?"
             "; head = attr num_heads 0 ; pin n s t p ; macs x w + n s s head dim + n s s head dim"
             // query, key and value of different sizes
             "| x[n s i] w[i j] b[j]? m[..m]? past[..p]? ab[..q]? pl[]? -> y[n s o] present[..r]?"
             "; pin n s j ; macs x w"
             "; role head head ; role head_dim dim",
     .zero = kProduct,
     .linear = {.kind = kAttention, .weights = operands(1), .bias = 2, .layer = "Attention"},
     .traits = kAttends, .scale = "scale", .infer = infer_attention, .factor = factor_attention,
     .patch = patch_attention, .domain = "com.microsoft"},
    {.op = "BiasGelu", .line = "x[..a c] b[c] -> y[..a c]", .domain = "com.microsoft"},
    {.op = "CausalConvWithState", .line = kCausalConvolution,
     .linear = {.kind = kConvolution, .weights = operands(1), .bias = 2, .layer = "Conv"},
     .infer = infer_causal_conv, .domain = "com.microsoft"},
    {.op = "DequantizeLinear", .line = kDequantize, .zero = kQuotient,
     .integers = {.operand = 0, .scale = 1, .zero_point = 2}, .traits = kReadsIntegers,
     .infer = infer_blocks, .factor = factor_blocks,
     .domain = "com.microsoft"},
    {.op = "DynamicQuantizeLSTM",
     .line = "x[t n i] w[d i (4 h)] r[d h (4 h)] b[d (8 h)]? l[n]? h0[d n h]? c0[d n h]? p[d (3 h)]?"
             "ws~[d (4 h)] wz~[d (4 h)] rs~[d (4 h)] rz~[d (4 h)] -> y[t d n h] yh[d n h]? yc[d n h]?"
             "; h = attr hidden_size 0 ; pin d ; macs x w + t n r"
             "| x[t n i] w[d i (4 h)] r[d h (4 h)] b[d (8 h)]? l[n]? h0[d n h]? c0[d n h]? p[d (3 h)]?"
             "ws[d] wz[d] rs[d] rz[d] -> y[t d n h] yh[d n h]? yc[d n h]?"
             "; h = attr hidden_size 0 ; pin d ; macs x w + t n r",
     .integers = {.operand = 1, .scale = 8, .zero_point = 9},
     .data = {.operand = 2, .scale = 10, .zero_point = 11}, .zero_of = zero_of_lstm,
     .domain = "com.microsoft"},
    {.op = "DynamicQuantizeMatMul",
     .line = "a[..b m k] b[..b k n] bs~[n] bz~[n]? bias[n]? -> y[..b m n] ; macs b y",
     .zero = kProduct,
     .linear = {.kind = kMatrixProduct, .weights = operands(0, 1), .bias = 4, .layer = "MatMul"},
     .integers = {.operand = 1, .scale = 2, .zero_point = 3}, .domain = "com.microsoft"},
    {.op = "EmbedLayerNormalization",
     .line = "t[n s] g[n s]? w[v c] p[u c] e[z c]? gamma[c] beta[c] m[n s]? at[..q]?"
             "-> y[n s c] k[n]? x[n s c]? ; pin n s ; mixes c",
     .zero = kConstant, .norm = {.gain = 5, .shift = 6}, .domain = "com.microsoft"},
    {.op = "FastGelu", .line = "x[..a c] b[c]? -> y[..a c]", .domain = "com.microsoft"},
    {.op = "FusedConv",
     .line = "x[n (g i) ..s] w[(g o) i ..k] b[(g o)]? z[n (g o) ..t]? -> y[n (g o) ..t]"
             "; g = attr group 1 ; macs w y ; role group g",
     .linear = {.kind = kConvolution, .weights = operands(1), .bias = 2, .layer = "Conv"},
     .infer = infer_conv, .zero_of = zero_of_fused, .domain = "com.microsoft"},
    {.op = "FusedGemm",
     .line = "a[m k] b[k n] c~[m n]? -> y[m n] ; swap a transA ; swap b transB ; macs b y",
     .linear = {.kind = kMatrixProduct, .weights = operands(0, 1), .bias = 2, .layer = "Gemm"},
     .zero_of = zero_of_fused, .domain = "com.microsoft"},
    {.op = "FusedMatMul",
     .line = "a[..x] b[..z] -> y[..w] ; if transBatchA = 1 | a[..x] b[..z] -> y[..w] ; if transBatchB = 1"
             "| a[..b k m] b[..b n k] -> y[..b m n] ; macs b y ; if transA = 1 ; if transB = 1"
             "| a[..b k m] b[..b k n] -> y[..b m n] ; macs b y ; if transA = 1"
             "| a[..b m k] b[..b n k] -> y[..b m n] ; macs b y ; if transB = 1"
             "| a[..b m k] b[..b k n] -> y[..b m n] ; macs b y",
     .zero = kProduct,
     .linear = {.kind = kMatrixProduct, .weights = operands(0, 1), .layer = "MatMul"},
     .traits = kSums, .scale = "alpha", .domain = "com.microsoft"},
    {.op = "Gelu", .line = kUnary, .domain = "com.microsoft"},
    {.op = "GemmFastGelu", .line = "a[..b m k] b[k n] bias[n]? -> y[..b m n] ; macs b y",
     .zero = kProduct,
     .linear = {.kind = kMatrixProduct, .weights = operands(1), .bias = 2, .layer = "MatMul"},
     .domain = "com.microsoft"},
    {.op = "GroupQueryAttention",
     .line = "q[n s (head per 2 half)] k[n s (head 2 half)] v[n s (head 2 half)] pk[n head p (2 half)]?"
             "pv[n head p (2 half)]? at[..a]? total[..b]? cos[r half] sin[r half] ids[..e]?"
             "-> y[n s (head per 2 half)] nk[n head t (2 half)]? nv[n head t (2 half)]?"
             "; head = attr kv_num_heads 0 ; pin n s p t r half"
             "; macs n s s head per 2 half + n s s head per 2 half ; if do_rotary = 1"
             "| q[n s (head per dim)] k[n s (head dim)] v[n s (head dim)] pk[n head p dim]?"
             "pv[n head p dim]? at[..a]? total[..b]? cos[]? sin[]? ids[..e]?"
             "-> y[n s (head per dim)] nk[n head t dim]? nv[n head t dim]?"
             "; head = attr kv_num_heads 0 ; pin n s p t dim"
             "; macs n s s head per dim + n s s head per dim"
             "| qkv[n s packed] k[]? v[]? pk[n head p dim] pv[n head p dim] at[..a]? total[..b]? cos[..c]?"
             "sin[..d]? ids[..e]? -> y[n s (head per dim)] nk[n head t dim]? nv[n head t dim]?"
             "; head = attr kv_num_heads 0 ; pin n s p t head dim"
             "; macs n s s head per dim + n s s head per dim"
             "; role head head ; role head_dim dim ; role rotary half",
     .zero = kProduct, .traits = kAttends, .scale = "scale",
     .infer = infer_attention, .factor = factor_attention,
     .patch = patch_attention, .domain = "com.microsoft"},
    {.op = "LinearAttention", .line = kLinearAttention, .zero = kProduct, .traits = kAttends,
     .scale = "scale", .patch = patch_attention, .domain = "com.microsoft"},
    {.op = "MatMulIntegerToFloat",
     .line = "a[..b m k] b[..b k n] as~[1] bs~[n] az~[1]? bz~[n]? bias[n]? -> y[..b m n] ; macs b y",
     .zero = kProduct,
     .linear = {.kind = kMatrixProduct, .weights = operands(0, 1), .bias = 6, .layer = "MatMul"},
     .integers = {.operand = 1, .scale = 3, .zero_point = 5}, .domain = "com.microsoft"},
    {.op = "MatMulNBits", .line = kMatMulOfBits, .zero = kProduct,
     .linear = {.kind = kMatrixProduct, .weights = operands(1), .bias = 5, .layer = "MatMul"},
     .integers = {.operand = 1, .scale = 2, .zero_point = 3, .bits = "bits"},
     .patch = patch_matmul_of_bits, .domain = "com.microsoft"},
    {.op = "MoE", .line = kExperts, .zero = kProduct,
     .linear = {.kind = kContraction, .weights = operands(2, 4, 6), .layer = "MoE"},
     .domain = "com.microsoft"},
    {.op = "MultiHeadAttention",
     .line = "q[n s head 3 dim] k[]? v[]? b[(3 head dim)]? m[..m]? ab~[n head s s]?"
             "-> y[n s (head dim)] nk[n head s dim]? nv[n head s dim]?"
             "; head = attr num_heads 0 ; pin n s ; macs n s s head dim + n s s head dim"
             "| q[n s (head dim)] k[n l head 2 dim] v[]? b[]? m[..m]? ab~[n head s l]?"
             "-> y[n s (head dim)] ; head = attr num_heads 0 ; pin n s l"
             "; macs n s l head dim + n s l head dim"
             "| q[n s (head dim)] k[n l (head dim)] v[n l (head dim)] b[(3 head dim)] m[..m]? ab~[n head s t]?"
             "pk[n head p dim] pv[n head p dim]"
             "-> y[n s (head dim)] nk[n head t dim]? nv[n head t dim]?"
             "; head = attr num_heads 0 ; pin n s l p t ; macs n s l head dim + n s l head dim"
             "| q[n s (head dim)] k[n l (head dim)] v[n l (head vdim)] b[]? m[..m]? ab~[n head s t]?"
             "pk[n head p dim] pv[n head p vdim]"
             "-> y[n s (head vdim)] nk[n head t dim]? nv[n head t vdim]?"
             "; head = attr num_heads 0 ; pin n s l p t ; macs n s l head dim + n s l head vdim"
             "| q[n s (head dim)] k[n l (head dim)] v[n l (head dim)] b[(3 head dim)] m[..m]? ab~[n head s l]?"
             "-> y[n s (head dim)] nk[n head l dim]? nv[n head l dim]?"
             "; head = attr num_heads 0 ; pin n s l ; macs n s l head dim + n s l head dim"
             "| q[n s (head dim)] k[n l (head dim)] v[n l (head vdim)] b[]? m[..m]? ab~[n head s l]?"
             "-> y[n s (head vdim)] nk[n head l dim]? nv[n head l vdim]?"
             "; head = attr num_heads 0 ; pin n s l ; macs n s l head dim + n s l head vdim"
             "| q[n s (head dim)] k[n head l dim] v[n head l dim] b[(3 head dim)]? m[..m]? ab~[n head s l]?"
             "-> y[n s (head dim)] nk[n head l dim]? nv[n head l dim]?"
             "; head = attr num_heads 0 ; pin n s l ; macs n s l head dim + n s l head dim"
             "; role head head ; role head_dim dim ; role value_dim vdim",
     .zero = kProduct, .traits = kAttends, .scale = "scale",
     .infer = infer_attention, .patch = patch_attention, .domain = "com.microsoft"},
    {.op = "QGemm",
     .line = "a[m k] as~[1] az~[1] b[k n] bs~[n] bz~[n] c[n]? ys~[1]? yz~[1]? -> y[m n]"
             "; swap a transA ; swap b transB ; macs b y",
     .zero = kProduct,
     .linear = {.kind = kMatrixProduct, .weights = operands(3), .bias = 6, .layer = "Gemm"},
     .integers = {.operand = 3, .scale = 4, .zero_point = 5}, .traits = kReadsIntegers,
     .domain = "com.microsoft"},
    {.op = "QLinearAdd", .line = kQuantisedBinary, .domain = "com.microsoft"},
    {.op = "QLinearAveragePool", .line = kQuantisedPool, .infer = infer_pool,
     .domain = "com.microsoft"},
    {.op = "QLinearConcat", .infer = infer_concat, .factor = factor_concat,
     .domain = "com.microsoft"},
    {.op = "QLinearGlobalAveragePool", .line = kQuantisedPool, .infer = infer_global_pool,
     .domain = "com.microsoft"},
    {.op = "QLinearLeakyRelu", .line = kQuantisedUnary, .domain = "com.microsoft"},
    {.op = "QLinearMul", .line = kQuantisedBinary, .zero = kProduct, .domain = "com.microsoft"},
    {.op = "QLinearSigmoid", .line = kQuantisedUnary, .zero = kConstant, .domain = "com.microsoft"},
    {.op = "QMoE", .zero = kProduct,
     .linear = {.kind = kContraction, .weights = operands(2, 5, 8), .layer = "MoE"},
     .integers = {.operand = 2, .scale = 3, .zero_point = 11, .bits = "expert_weight_bits"},
     .data = {.operand = 5, .scale = 6, .zero_point = 12, .bits = "expert_weight_bits"},
     .infer = infer_coded_experts, .factor = factor_coded_experts, .line_of = line_of_coded_experts,
     .domain = "com.microsoft"},
    {.op = "QuantizeLinear", .line = kQuantize, .zero = kQuotient,
     .integers = {.operand = 0, .scale = 1, .zero_point = 2}, .traits = kChooses | kReadsIntegers,
     .infer = infer_blocks, .factor = factor_blocks,
     .domain = "com.microsoft"},
    {.op = "QuickGelu", .line = kUnary, .domain = "com.microsoft"},
    {.op = "RotaryEmbedding",
     .line = "x[n head s (half 2)] at[..p] cos[..c half] sin[..c half] -> y[n head s (half 2)]"
             "; pin n s c ; if interleaved = 1"
             "| x[n s (head half 2)] at[..p] cos[..c half] sin[..c half] -> y[n s (head half 2)]"
             "; head = attr num_heads 0 ; pin n s c ; if interleaved = 1"
             "| x[n head s (2 half)] at[..p] cos[..c half] sin[..c half] -> y[n head s (2 half)]"
             "; pin n s c"
             "| x[n s (head 2 half)] at[..p] cos[..c half] sin[..c half] -> y[n s (head 2 half)]"
             "; head = attr num_heads 0 ; pin n s c"
             "; role head head ; role rotary half",
     .zero = kFirst, .infer = infer_rotary, .factor = factor_rotary, .domain = "com.microsoft"},
    {.op = "SkipLayerNormalization",
     .line = "x[..a c] skip[..a c] gamma[c] beta[c]? b[c]? -> y[..a c] m[..a 1]? v[..a 1]? sum[..a c]?"
             "; mixes c",
     .norm = {.gain = 2, .shift = 3}, .domain = "com.microsoft"},
    {.op = "SkipSimplifiedLayerNormalization",
     .line = "x[..a c] skip[..a c] gamma[c] b[c]? -> y[..a c] m[..a 1]? v[..a 1]? sum[..a c]? ; mixes c",
     .norm = {.gain = 2}, .domain = "com.microsoft"},
    // QONNX, under its present domain; `present_domain` knows its earlier ones.
    {.op = "Conv",
     .line = "x[n ..s (g i)] w[(g o) ..k i] b[(g o)]? -> y[n ..t (g o)]"
             "; g = attr group 1 ; macs w y ; role group g",
     .zero = kProduct,
     .linear = {.kind = kConvolution, .weights = operands(1), .bias = 2, .layer = "Conv"},
     .infer = infer_conv_channels_last, .domain = "qonnx.custom_op.channels_last"},
    {.op = "BipolarQuant", .line = "x[..x] s~[..x] -> y[..x]", .zero = kConstant,
     .domain = "qonnx.custom_op.general"},
    {.op = "IntQuant", .line = kFakeQuantize, .zero = kQuotient, .integers = {.zero_point = 2},
     .traits = kChooses, .domain = "qonnx.custom_op.general"},
    {.op = "MultiThreshold",
     .line = "x[n ..s c] t~[c k] -> y[n ..s c] ; pin k ; if data_layout = NHWC"
             "| x[n c ..s] t~[c k] -> y[n c ..s] ; pin k ; if data_layout ?= NCHW",
     .zero = kConstant, .traits = kChooses, .domain = "qonnx.custom_op.general"},
    {.op = "Quant", .line = kFakeQuantize, .zero = kQuotient, .integers = {.zero_point = 2},
     .traits = kChooses, .domain = "qonnx.custom_op.general"},
    {.op = "Trunc", .line = kFakeTruncate, .zero = kQuotient, .integers = {.zero_point = 2},
     .traits = kChooses, .domain = "qonnx.custom_op.general"},
    // Operators that TorchScript has and ONNX has not: pools onto a grid of any size, and recurrent
    // layers with gates in one matrix, one node per layer and direction.
    {.op = "AdaptiveAveragePool", .infer = infer_resize, .factor = factor_resize,
     .domain = "torch"},
    {.op = "AdaptiveMaxPool", .infer = infer_resize, .factor = factor_resize, .domain = "torch"},
    {.op = "Gru",
     .line = "x[t n i] w[(3 h) i] r[(3 h) h] b[(3 h)]? c[(3 h)]? h0[1 n h]? -> y[t n h] yh[1 n h]?"
             "; macs x w + t n r",
     .zero = kProduct,
     .linear = {.kind = kRecurrence, .weights = operands(1, 2), .bias = 3, .layer = "GRU"},
     .recurrence = {.initial = 5, .resets = true},
     .domain = "torch"},
    {.op = "Lstm",
     .line = "x[t n i] w[(4 h) i] r[(4 h) p] b[(4 h)]? c[(4 h)]? h0[1 n p]? c0[1 n h]? m[p h]"
             "-> y[t n p] yh[1 n p]? yc[1 n h]? ; macs x w + t n r + t n m"
             "| x[t n i] w[(4 h) i] r[(4 h) h] b[(4 h)]? c[(4 h)]? h0[1 n h]? c0[1 n h]?"
             "-> y[t n h] yh[1 n h]? yc[1 n h]? ; macs x w + t n r",
     .zero = kProduct,
     .linear = {.kind = kRecurrence, .weights = operands(1, 2, 7), .bias = 3, .layer = "LSTM"},
     .recurrence = {.initial = 5},
     .domain = "torch"},
    {.op = "Rnn",
     .line = "x[t n i] w[h i] r[h h] b[h]? c[h]? h0[1 n h]? -> y[t n h] yh[1 n h]? ; macs x w + t n r",
     .zero = kProduct,
     .linear = {.kind = kRecurrence, .weights = operands(1, 2), .bias = 3, .layer = "RNN"},
     .recurrence = {.initial = 5},
     .domain = "torch"},});
// clang-format on

constexpr auto key_of_row(const OpSchema& row) { return std::pair(row.domain, row.op); }
static_assert(std::ranges::adjacent_find(kOperators, std::ranges::greater_equal{}, key_of_row) ==
              kOperators.end());

}  // namespace

std::span<const OpSchema> operator_table() { return kOperators; }

}  // namespace parsimony
