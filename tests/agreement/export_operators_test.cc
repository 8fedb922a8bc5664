// Each operator of TorchScript as an ONNX model: libtorch, our executor and ONNX Runtime agree.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <ostream>

#include "parsimony/base/errors.h"
#include "tests/agreement/export_support.h"

namespace parsimony::test {
namespace {

struct Case {
  const char* name;
  const char* body;  ///< of x
  Shape x = {2, 4, 6, 8};
  std::vector<Shape> weights = {};
  DType dtype = DType::kFloat32;
};

// clang-format off
const Case kCases[] = {
    {"Conv", "torch.conv2d(x, self.w0, self.w1, [2, 1], [1, 0], [1, 2], 2)", {2, 4, 9, 9}, {{6, 2, 3, 3}, {6}}},
    {"ConvSame", "torch.conv2d(x, self.w0, self.w1, [1, 1], 'same')", {2, 4, 9, 9}, {{6, 4, 4, 4}, {6}}},
    {"Conv1d", "torch.conv1d(x, self.w0)", {2, 4, 9}, {{6, 4, 3}}},
    {"Conv3d", "torch.conv3d(x, self.w0)", {1, 2, 5, 5, 5}, {{3, 2, 3, 3, 3}}},
    {"ConvTranspose", "torch.conv_transpose2d(x, self.w0, self.w1, [2, 2], [1, 1], [1, 1])", {1, 4, 5, 5}, {{4, 3, 3, 3}, {3}}},
    {"MaxPool", "torch.max_pool2d(x, [3, 2], [2, 2], [1, 0])"},
    {"MaxPoolCeil", "torch.max_pool2d(x, [3, 3], [2, 2], [0, 0], [1, 1], True)"},
    {"MaxPoolCeilPadded", "torch.max_pool2d(x, [2, 2], [2, 2], [1, 1], [1, 1], True)", {1, 2, 5, 7}},
    {"AvgPool", "torch.avg_pool2d(x, [3, 3], [2, 2], [1, 1])"},
    {"AvgPoolCeil", "torch.avg_pool2d(x, [3, 3], [2, 2], [1, 1], True)"},
    {"AvgPoolCeilExclusive", "torch.avg_pool2d(x, [3, 3], [2, 2], [1, 1], True, False)"},
    {"AvgPool1d", "torch.avg_pool1d(x, [3], [2], [1])", {2, 4, 9}},
    {"GlobalAverage", "torch.adaptive_avg_pool2d(x, [1, 1])"},
    {"AdaptiveAverageEven", "torch.adaptive_avg_pool2d(x, [3, 2])"},
    {"AdaptiveAverageInner", "torch._adaptive_avg_pool2d(x, [3, 2])"},
    {"AdaptiveAverageUneven", "torch.adaptive_avg_pool2d(x, [4, 3])"},
    {"AdaptiveAverageUpwards", "torch.adaptive_avg_pool2d(x, [7, 7])", {1, 2, 3, 5}},
    {"AdaptiveAverageSame", "torch.adaptive_avg_pool2d(x, [6, 8])"},
    {"AdaptiveAverage3d", "torch.adaptive_avg_pool3d(x, [2, 3, 2])", {1, 2, 5, 6, 3}},
    {"AdaptiveMaxUneven", "torch.adaptive_max_pool2d(x, [4, 3])[0]"},
    {"BatchNorm", "torch.batch_norm(x, self.w0, self.w1, self.w2, torch.abs(self.w3), False, 0.1, 1e-5, False)", {2, 4, 6, 8}, {{4}, {4}, {4}, {4}}},
    {"LayerNorm", "torch.layer_norm(x, [6, 8], self.w0, self.w1, 1e-3)", {2, 4, 6, 8}, {{6, 8}, {6, 8}}},
    {"LayerNormPlain", "torch.layer_norm(x, [8])"},
    {"GroupNorm", "torch.group_norm(x, 2, self.w0, self.w1)", {2, 4, 6, 8}, {{4}, {4}}},
    {"NativeLayerNorm", "torch.native_layer_norm(x, [6, 8], self.w0, self.w1, 1e-3)[0]", {2, 4, 6, 8}, {{6, 8}, {6, 8}}},
    {"NativeGroupNorm", "torch.native_group_norm(x, self.w0, self.w1, 2, 4, 48, 2, 1e-5)[0]", {2, 4, 6, 8}, {{4}, {4}}},
    {"NativeBatchNorm", "torch.native_batch_norm(x, self.w0, self.w1, self.w2, torch.abs(self.w3), False, 0.1, 1e-5)[0]", {2, 4, 6, 8}, {{4}, {4}, {4}, {4}}},
    {"GroupNormOfVectors", "torch.group_norm(x, 2)", {2, 4}},
    {"InstanceNorm", "torch.instance_norm(x, self.w0, self.w1, None, None, True, 0.1, 1e-5, False)", {2, 4, 6, 8}, {{4}, {4}}},
    {"Linear", "torch.linear(x, self.w0, self.w1)", {2, 5, 8}, {{3, 8}, {3}}},
    {"Addmm", "torch.addmm(self.w0, x, self.w1, beta=0.5, alpha=2.0)", {3, 4}, {{5}, {4, 5}}},
    {"Baddbmm", "torch.baddbmm(x, x, self.w0, beta=0.5, alpha=2.0)", {2, 4, 4}, {{2, 4, 4}}},
    {"Matmul", "torch.matmul(x, self.w0)", {2, 3, 4}, {{4}}},
    {"Bmm", "torch.bmm(x, torch.transpose(x, 1, 2))", {2, 3, 4}},
    {"Einsum", "torch.einsum('bij,bkj->bik', [x, x])", {2, 3, 4}},
    {"Attention", "torch.scaled_dot_product_attention(x, self.w0, self.w1)", {2, 3, 4}, {{2, 5, 4}, {2, 5, 6}}},
    {"AttentionScaled", "torch.scaled_dot_product_attention(x, self.w0, self.w0, None, 0.0, False, scale=0.3)", {2, 3, 4}, {{2, 5, 4}}},
    {"AttentionCausal", "torch.scaled_dot_product_attention(x, self.w0, self.w0, None, 0.0, True)", {2, 3, 4}, {{2, 3, 4}}},
    {"AttentionMask", "torch.scaled_dot_product_attention(x, self.w0, self.w0, self.w1)", {2, 3, 4}, {{2, 5, 4}, {3, 5}}},
    {"AttentionBooleanMask", "torch.scaled_dot_product_attention(x, self.w0, self.w0, torch.gt(torch.tril(torch.ones([3, 3])), 0.5))", {2, 3, 4}, {{2, 3, 4}}},
    {"RmsNorm", "torch.rms_norm(x, [6, 8], self.w0, 0.001)", {2, 4, 6, 8}, {{6, 8}}},
    {"Relu", "torch.relu(x)"}, {"Relu6", "torch.clamp(x, 0, 6)"}, {"Sigmoid", "torch.sigmoid(x)"},
    {"Tanh", "torch.tanh(x)"}, {"Silu", "torch.silu(x)"}, {"Gelu", "torch.gelu(x)"},
    {"GeluTanh", "torch.gelu(x, approximate='tanh')"}, {"Mish", "torch.mish(x)"},
    {"Hardswish", "torch.hardswish(x)"}, {"Hardsigmoid", "torch.hardsigmoid(x)"},
    {"Hardtanh", "torch.hardtanh(x, -0.5, 0.5)"}, {"LeakyRelu", "torch.leaky_relu(x, 0.2)"},
    {"Elu", "torch.elu(x, 0.7)"}, {"Celu", "torch.celu(x, 0.7)"}, {"Selu", "torch.selu(x)"},
    {"Softplus", "torch.softplus(x)"}, {"LogSigmoid", "torch.log_sigmoid(x)"},
    {"Prelu", "torch.prelu(x, self.w0)", {2, 4, 6, 8}, {{4}}}, {"Glu", "torch.glu(x, 1)"},
    {"Softmax", "torch.softmax(x, 1)"}, {"LogSoftmax", "torch.log_softmax(x, -1)"},
    {"SoftmaxInner", "torch._softmax(x, 1, False)"}, {"LogSoftmaxInner", "torch._log_softmax(x, 1, False)"},
    {"Abs", "torch.abs(x)"}, {"Neg", "torch.neg(x)"}, {"Exp", "torch.exp(x)"}, {"Erf", "torch.erf(x)"},
    {"Sqrt", "torch.sqrt(torch.abs(x))"}, {"Rsqrt", "torch.rsqrt(torch.abs(x) + 1)"}, {"Log", "torch.log(torch.abs(x) + 1)"},
    {"Floor", "torch.floor(x)"}, {"Ceil", "torch.ceil(x)"}, {"Round", "torch.round(x)"}, {"Sign", "torch.sign(x)"},
    {"Sin", "torch.sin(x)"}, {"Cos", "torch.cos(x)"}, {"Reciprocal", "torch.reciprocal(torch.abs(x) + 1)"},
    {"Square", "torch.square(x)"}, {"Pow", "torch.pow(torch.abs(x), 2.5)"}, {"PowTwo", "torch.pow(x, 2)"},
    {"AddScaled", "torch.add(x, self.w0, alpha=0.5)", {2, 4}, {{4}}}, {"Rsub", "torch.rsub(x, 1)"},
    {"SubMulDiv", "torch.div(torch.mul(torch.sub(x, 1), self.w0), 3)", {2, 4}, {{4}}},
    {"DivFloor", "torch.div(x, 0.3, rounding_mode='floor')"}, {"FloorDivide", "torch.floor_divide(x, 0.3)"},
    {"Remainder", "torch.remainder(x, 0.3)"}, {"Fmod", "torch.fmod(x, 0.3)"},
    {"MaximumMinimum", "torch.maximum(torch.minimum(x, self.w0), self.w1)", {2, 4}, {{4}, {4}}},
    {"Addcmul", "torch.addcmul(x, self.w0, self.w1, value=0.5)", {2, 4}, {{4}, {4}}},
    {"Compare", "torch.where(torch.gt(x, 0.1), x, self.w0)", {2, 4}, {{4}}},
    {"LogicalNot", "torch.where(torch.logical_not(torch.gt(x, 0.1)), x, self.w0)", {2, 4}, {{4}}},
    {"BooleanResult", "torch.logical_and(torch.ne(x, 0.0), torch.le(x, 0.5))"},
    {"Fill", "torch.fill_(torch.relu(x), 1.5) + x"},
    {"MaskedFill", "torch.masked_fill(x, torch.gt(x, 0.0), -1.5)"}, {"Triu", "torch.triu(x, 1)"}, {"Tril", "torch.tril(x)"},
    {"TypeAsInteger", "torch.cumsum(torch.gt(x, 0.0), 1).type_as(torch.gt(x, 0.5).to(3))"},
    {"RangeOfInts", "x + torch.arange(2, 2 + x.size(-1), dtype=3)"}, {"Cumsum", "torch.cumsum(x, 1)"}, {"CumsumOfBooleans", "torch.cumsum(torch.gt(x, 0.0), 1)"},
    {"CumsumOfBooleansAsReal", "torch.cumsum(torch.gt(x, 0.0), 1, dtype=6)"},
    {"Histogram", "torch.histc(x, 5, -1.0, 1.0)"}, {"HistogramOfIntegers", "torch.histc(torch.floor(x * 3), 4, 0, 3)"}, {"IntegerTimesNumber", "x * 0.5", {2, 4}, {}, DType::kInt64},
    {"IntegersByReals", "torch.arange(8) / (torch.abs(x) + 1)"}, {"IntegersAndReals", "torch.rsub(torch.arange(8) - x, torch.arange(8))"},
    {"Any", "torch.where(torch.any(torch.gt(x, 1.0), -1, True), x, -x)"}, {"All", "torch.where(torch.all(torch.gt(x, -1.0), 1), x[:, 0], -x[:, 1])"},
    {"ScalarTensor", "torch.where(torch.gt(x, 0.1), x, torch.scalar_tensor(0.5))"},
    {"BitwiseAnd", "torch.where(torch.bitwise_and(torch.gt(x, 0.0), torch.lt(x, 1.0)), x, -x)"},
    {"SliceScatter", "torch.slice_scatter(x, self.w0, 1, 1, -1)", {2, 4, 3}, {{2, 2, 3}}},
    {"SliceScatterToTheEnd", "torch.slice_scatter(x, self.w0, 2, 1)", {2, 4, 3}, {{2, 4, 2}}},
    {"SelectScatter", "torch.select_scatter(x, self.w0, 1, -1)", {2, 4, 3}, {{2, 3}}},
    {"ToCopy", "torch._to_copy(x * 3, dtype=4) * 0.5"},
    {"IntegerPlusTensor", "x + self.w0", {2, 4}, {{4}}, DType::kInt64}, {"IntegerDivided", "x / 4", {2, 4}, {}, DType::kInt64},
    {"SumOfIntegers", "torch.sum(x)", {2, 4}, {}, DType::kInt64}, {"CountOfBooleans", "torch.sum(torch.gt(x, 0.0), [1])"},
    {"CastToInteger", "x.to(3)"}, {"CastToFloat", "x.to(6) * 2", {2, 4}, {}, DType::kInt64},
    {"View", "x.view(2, -1)"}, {"Reshape", "torch.reshape(x, [-1, 12])"}, {"Flatten", "torch.flatten(x, 1, 2)"},
    {"Unflatten", "x.unflatten(1, [2, 2])"}, {"Permute", "torch.permute(x, [0, 2, 3, 1])"},
    {"Transpose", "torch.transpose(x, -1, 1)"}, {"Squeeze", "torch.squeeze(torch.mean(x, [2], True), 2)"},
    {"Unsqueeze", "torch.unsqueeze(x, -1)"}, {"Expand", "x.expand(-1, 3, 4)", {2, 1, 4}},
    {"ExpandNew", "x.expand(3, 2, -1)", {2, 4}}, {"Repeat", "x.repeat([2, 1, 3])", {2, 4}},
    {"Cat", "torch.cat([x, self.w0], 1)", {2, 4}, {{2, 3}}}, {"Stack", "torch.stack([x, x * 2], -1)"},
    {"Chunk", "torch.chunk(x, 2, 1)[1]"}, {"Split", "torch.split(x, 3, 1)[1]"},
    {"SplitSizes", "torch.split_with_sizes(x, [1, 3], 1)[1]"}, {"Unbind", "torch.unbind(x, 1)[2]"},
    {"Slice", "x[:, 1:-1, ::2]"}, {"Select", "x[:, -1]"}, {"Narrow", "torch.narrow(x, 1, 1, 2)"},
    {"Roll", "torch.roll(x, [1, -2], [2, 3])"}, {"IndexSelect", "torch.index_select(x, 1, torch.arange(2))"},
    {"WhereOfIntegers", "torch.embedding(self.w0, torch.where(torch.gt(x, 0.0), 2, 0))", {2, 4}, {{3, 4}}},
    {"MaskedIntegers", "torch.embedding(self.w0, x.masked_fill(torch.gt(x, 1), 1))", {2, 5}, {{9, 3}}, DType::kInt64},
    {"Index", "x[:, torch.arange(3)]"}, {"IndexLater", "x[:, torch.arange(3), torch.arange(3) * 2]"}, {"IndexLast", "x[:, :, torch.arange(2).unsqueeze(1), torch.arange(3)]"}, {"IndexApart", "x[:, torch.arange(3), :, torch.arange(3)]"},
    {"Eye", "torch.matmul(x, torch.eye(8))"}, {"EyeOblong", "x + torch.eye(6, 8)"}, {"IndexGrid", "x[torch.arange(2).unsqueeze(1), torch.arange(3)]"}, {"Gather", "torch.gather(x, 1, torch.argmax(x, 1, True))"},
    {"Embedding", "torch.embedding(self.w0, x)", {2, 5}, {{9, 3}}, DType::kInt64},
    {"Pad", "torch.constant_pad_nd(x, [1, 2, 0, 1], 0.5)"}, {"PadReflect", "torch.reflection_pad2d(x, [1, 2, 2, 1])"},
    {"PadReplicate", "torch.replication_pad2d(x, [1, 2, 2, 1])"},
    {"Mean", "torch.mean(x, [2, 3])"}, {"MeanAll", "torch.mean(x)"}, {"Sum", "torch.sum(x, [-1], True)"},
    {"Amax", "torch.amax(x, [1, 2])"}, {"MaxOfDimension", "torch.max(x, 1)"}, {"Argmin", "torch.argmin(x, 2)"},
    {"Logsumexp", "torch.logsumexp(x, [1])"}, {"Norm", "torch.norm(x, 2, [1], True)"}, {"NormOne", "torch.norm(x, 1, [1])"},
    {"Var", "torch.var(x, [1], False)"}, {"Std", "torch.std(x, [1], False, True)"},
    {"UpsampleNearest", "torch.upsample_nearest2d(x, [9, 11])"},
    {"UpsampleNearestScale", "torch.upsample_nearest2d(x, None, [2.0, 3.0])"},
    {"UpsampleNearestExact", "torch._upsample_nearest_exact2d(x, [9, 11])"},
    {"UpsampleBilinear", "torch.upsample_bilinear2d(x, [9, 11], False)"},
    {"UpsampleBilinearCorners", "torch.upsample_bilinear2d(x, [9, 11], True)"},
    {"UpsampleBicubic", "torch.upsample_bicubic2d(x, [9, 11], False)"},
    {"PixelShuffle", "torch.pixel_shuffle(x, 2)"}, {"ChannelShuffle", "torch.channel_shuffle(x, 2)"},
    {"NativeAttention", "torch._native_multi_head_attention(x, x, x, 8, 2, self.w0, self.w1, self.w2, self.w3, None, False)[0]", {2, 5, 8}, {{24, 8}, {24}, {8, 8}, {8}}},
    {"EncoderLayer", "torch._transformer_encoder_layer_fwd(x, 8, 2, self.w0, self.w1, self.w2, self.w3, True, False, 1e-5, self.w4, self.w5, self.w6, self.w7, self.w8, self.w9, self.w10, self.w11)", {2, 5, 8}, {{24, 8}, {24}, {8, 8}, {8}, {8}, {8}, {8}, {8}, {12, 8}, {12}, {8, 12}, {8}}},
    {"EncoderLayerNormFirst", "torch._transformer_encoder_layer_fwd(x, 8, 2, self.w0, self.w1, self.w2, self.w3, False, True, 1e-5, self.w4, self.w5, self.w6, self.w7, self.w8, self.w9, self.w10, self.w11)", {2, 5, 8}, {{24, 8}, {24}, {8, 8}, {8}, {8}, {8}, {8}, {8}, {12, 8}, {12}, {8, 12}, {8}}},
    {"NanToNum", "torch.nan_to_num(torch.sqrt(x), 0.5) + torch.nan_to_num(1 / torch.relu(x), 0.0, 9.0, -9.0)"},
    {"Logit", "torch.logit(torch.sigmoid(x), 0.2)"}, {"Hypot", "torch.hypot(x, x * 2)"},
    {"Xlogy", "torch.xlogy(torch.relu(x), torch.abs(x) + 1)"}, {"Rrelu", "torch.rrelu(x, 0.1, 0.3, False)"},
    {"ZerosLike", "torch.cat([torch.zeros_like(x), x, torch.full([2, 4, 6, 8], 0.5)], 1)"},
    {"FullOfComputed", "x + torch.full([2, 4, 6, 8], float(torch.mean(x)))"},
    {"VarUnbiased", "torch.var(x, [2, 3])"}, {"VarWhole", "torch.var(x)"}, {"StdUnbiased", "torch.std(x, [1], True, True)"},
    {"VarMean", "torch.var_mean(x, [2, 3])"}, {"StdMean", "torch.std_mean(x, [1], False, True)[1]"},
    {"Log2", "torch.log2(torch.abs(x) + 1)"}, {"Log10", "torch.log10(torch.abs(x) + 1)"}, {"Log1p", "torch.log1p(torch.abs(x))"},
    {"Expm1", "torch.expm1(x)"}, {"Erfc", "torch.erfc(x)"}, {"Trunc", "torch.trunc(x * 3)"}, {"Frac", "torch.frac(x * 3)"},
    {"Lerp", "torch.lerp(x, self.w0, 0.3)", {2, 4}, {{4}}}, {"IsNaN", "torch.isnan(torch.sqrt(x))"}, {"IsInf", "torch.isinf(1 / torch.relu(x))"},
    {"Softshrink", "torch.softshrink(x, 0.2)"}, {"Hardshrink", "torch.hardshrink(x, 0.2)"}, {"Threshold", "torch.threshold(x, 0.2, -1.0)"},
    {"Movedim", "torch.movedim(x, [1, 0], [-1, 1])"}, {"Swapdims", "torch.swapdims(x, 1, 3)"}, {"Ravel", "torch.ravel(x)"},
    {"Tile", "torch.tile(x, [2, 1])"}, {"TileNew", "torch.tile(x, [2, 1, 3])", {2, 4}}, {"Flip", "torch.flip(x, [1, -1])"},
    {"Hstack", "torch.hstack([x, x * 2])"}, {"Vstack", "torch.vstack([x, x * 2])"}, {"Dstack", "torch.dstack([x, x * 2])"},
    {"RollBack", "torch.roll(x, [-1], [1])"}, {"Arange", "x + torch.arange(0, 8, dtype=6)"},
    {"Meshgrid", "x + torch.meshgrid([torch.arange(8), torch.arange(6)], indexing='xy')[0]"},
    {"ClampByTensors", "torch.clamp(x, torch.amin(x, [1], True) * 0.5, torch.amax(x, [1], True) * 0.5)"},
    {"IndexPutIntoIntegers", "x[torch.index_put(torch.zeros_like(torch.argmax(x, 0)[0, 0, :2]), [torch.arange(2)], torch.arange(2))]"},
    {"ArangeWholeSteps", "x + torch.arange(0, 8, 1.0, dtype=4)"},
    {"ArangeReal", "x + torch.arange(0.5, 4.5, 0.5)"},
    {"Linspace", "x * torch.linspace(-1, 1.5, 8)"}, {"LinspaceOfOne", "x * torch.linspace(2, 3, 1)"},
    {"Unfold", "x.unfold(3, 3, 2)"}, {"UnfoldInside", "x.unfold(1, 2, 1)"},
    {"Im2col", "torch.im2col(x, [3, 2], [1, 2], [1, 0], [2, 1])"}, {"PixelUnshuffle", "torch.pixel_unshuffle(x, 2)"},
    {"GridSampler", "torch.grid_sampler(x, self.w0, 0, 0, False)", {2, 4, 6, 8}, {{2, 3, 5, 2}}},
    {"GridSamplerBorder", "torch.grid_sampler(x, self.w0, 1, 1, True)", {2, 4, 6, 8}, {{2, 3, 5, 2}}},
    {"Topk", "torch.topk(x, 3, 2, False)[0]"}, {"TopkPlaces", "torch.topk(x, 3, 2)[1]"},
    {"Sort", "torch.sort(x, 1, True)[0]"}, {"Argsort", "torch.argsort(x, 3)"},
    {"Scatter", "torch.scatter(x, 1, torch.argmax(x, 1, True), self.w0)", {2, 4}, {{2, 1}}},
    {"ScatterAdd", "torch.scatter_add(x, 1, torch.argmax(x, 1, True), self.w0)", {2, 4}, {{2, 1}}},
    {"PadCircular", "torch.pad(x, [1, 2, 0, 1], 'circular')"},
    {"IndexPairs", "x[torch.arange(2), torch.argmax(torch.sum(x, [2, 3]), 1)]"},
    {"ScatterGreatest", "torch.scatter_reduce(x, 1, torch.argmax(x, 1, True), self.w0, 'amax')", {2, 4}, {{2, 1}}},
    {"ScatterLeastOfNew", "torch.scatter_reduce(x, 1, torch.argmax(x, 1, True), self.w0, 'amin', include_self=False)", {2, 4}, {{2, 1}}},
    {"ScatterProduct", "torch.scatter_reduce(x, 0, torch.argmax(x, 0, True), self.w0, 'prod')", {2, 4}, {{1, 4}}},
    {"ScatterSumOfNew", "torch.scatter_reduce(x, 0, torch.argmax(x, 0, True), self.w0, 'sum', include_self=False)", {2, 4}, {{1, 4}}},
    {"PutWhere", "torch.index_put(x, [torch.gt(x[:, :, 0], 0.1)], self.w0)", {2, 4, 3}, {{3}}},
    {"PutWhereOneRow", "torch.index_put(x, [torch.gt(x[:, :, 0], 0.1)], self.w0)", {2, 4, 3}, {{1, 3}}},
    {"PutWhereLater", "torch.index_put(x, [None, torch.gt(x[0, :, 0], 0.1)], self.w0)", {2, 4, 3}, {{3}}},
    {"PutWhereNumber", "torch.index_put(x, [torch.gt(x, 0.1)], torch.scalar_tensor(0.5))", {2, 4}},
    {"ScatterNumber", "torch.scatter(x, 1, torch.argmax(x, 1, True), 2.5)", {2, 4}},
    {"FrobeniusNorm", "torch.frobenius_norm(x, [1], True)"}, {"LinalgNorm", "torch.linalg_norm(x, None, [1], True)"},
    {"WeightNorm", "torch.conv1d(x, torch._weight_norm(self.w0, self.w1, 0))", {2, 4, 9}, {{6, 4, 3}, {6, 1, 1}}},
    {"UnsafeChunk", "torch.unsafe_chunk(x, 2, 1)[1]"}, {"SqueezeAll", "torch.squeeze(x)", {2, 1, 4, 1}},
    {"BroadcastTo", "torch.broadcast_to(x, [3, 2, 4])", {2, 4}}, {"ZerosLikeIntegers", "torch.embedding(self.w0, torch.zeros_like(x))", {2, 5}, {{9, 3}}, DType::kInt64},
    {"BooleanTriangle", "torch.masked_fill(x, torch.bitwise_not(torch.tril(torch.ones([4, 4], dtype=11))), -1.0)", {4, 4}},
    {"TypeAs", "torch.argmax(x, 1).type_as(x)"},
    {"IndexAdd", "torch.index_add(x, 0, torch.arange(2) * 0 + 1, self.w0)", {3, 4}, {{2, 4}}},
    {"IndexAddInside", "torch.index_add(x, 1, torch.arange(2) * 2, self.w0)", {3, 4}, {{3, 2}}},
    {"IndexCopy", "torch.index_copy(x, 1, torch.arange(2), self.w0)", {3, 4}, {{3, 2}}},
    {"IndexFill", "torch.index_fill(x, 1, torch.arange(2) * 2, 0.5)", {3, 4}},
    {"Atan2", "torch.atan2(x, self.w0)", {3, 4}, {{3, 4}}}, {"Addmv", "torch.addmv(self.w0, x, self.w1, beta=0.5, alpha=2.0)", {3, 4}, {{3}, {4}}},
    {"EmbeddingBag", "torch.embedding_bag(self.w0, x, torch.arange(2) * 3, False, 1)[0]", {5}, {{9, 3}}, DType::kInt64},
    {"PairwiseDistance", "torch.pairwise_distance(x, self.w0, 2.0, 0.01)", {3, 4}, {{3, 4}}},
    {"Rot90", "torch.rot90(x, 1, [1, 3])"}, {"Diff", "torch.diff(x, 1, 2)"},
    {"WindowOfSizes", "torch.avg_pool2d(x, [x.size(2), x.size(3)])"},
    {"Contiguous", "torch.clone(torch.contiguous(torch.detach(x)))"}, {"Dropout", "torch.dropout(x, 0.5, False)"},
    {"DropoutInPlace", "torch.dropout_(torch.add(x, 1), 0.5, False)"},
};
// clang-format on

void PrintTo(const Case& one, std::ostream* out) { *out << one.body; }

class ExportOperators : public testing::TestWithParam<Case> {};

TEST_P(ExportOperators, Agree) {
  const Case& one = GetParam();
  const auto module = expression(one.body, one.weights);
  const Exported made = expect_exported(module, {{one.x, {}, one.dtype}});
  EXPECT_TRUE(made.proof.holds());
  EXPECT_EQ(made.inputs.size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(All, ExportOperators, testing::ValuesIn(kCases),
                         [](const auto& one) { return std::string(one.param.name); });

/// Refused, with this in the message.
void expect_refused(const torch::jit::Module& module, const Shape& x, const std::string& message) {
  try {
    expect_exported(module, {{x, {}}});
    ADD_FAILURE() << "was exported";
  } catch (const UnsupportedError& error) {
    EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
  }
}

TEST(ExportRefuses, AnUnknownOperatorByItsName) {
  expect_refused(expression("torch.logcumsumexp(x, 1)"), {2, 3}, "aten::logcumsumexp");
}

TEST(ExportRefuses, BitsOfIntegers) {
  expect_refused(expression("torch.bitwise_not(torch.argmax(x, 1))"), {2, 3}, "booleans");
}

/// `lines` of a forward(self, x), each indented by four.
torch::jit::Module program(const std::string& lines) {
  torch::jit::Module module = expression("x", {{6, 6}, {6, 6}});
  torch::jit::Module made("Net");
  for (const auto& parameter : module.named_parameters()) {
    made.register_parameter(parameter.name, parameter.value, false);
  }
  made.define("def forward(self, x):\n" + lines);
  return made;
}

/// A branch may return what stands around it, or a constant; branches may be nested.
TEST(ExportControl, BranchesThatDataDecide) {
  const Exported made = expect_exported(program(R"(
    y = torch.linear(x, self.w0)
    if bool(y.mean() > 0):
        if bool(x.mean() > 0):
            y = torch.linear(y, self.w1) + y
        else:
            y = x
        z = y * 2
    else:
        z = torch.ones([6])
    return y, z
)"),
                                        {{{3, 6}, {}}}, {.dynamic_batch = true});
  EXPECT_TRUE(made.proof.holds());
}

TEST(ExportControl, LoopsUntilDataSaySo) {
  const Exported made = expect_exported(program(R"(
    steps = 0
    limit = x.abs().mean()
    while bool(x.abs().mean() > limit / 8):
        x = torch.tanh(x) / 2
        steps += 1
    return torch.linear(x, self.w0) * steps
)"),
                                        {{{3, 6}, {}}}, {.dynamic_batch = true});
  EXPECT_TRUE(made.proof.holds());
}

/// The type of a result would depend on the data.
TEST(ExportRefuses, BlocksThatReturnDifferentTypes) {
  expect_refused(program(R"(
    if bool(x.mean() > 0):
        y = torch.argmax(x, 1)
    else:
        y = x.mean(1)
    return y
)"),
                 {3, 6}, "different types");
  expect_refused(program(R"(
    y = torch.argmax(x, 1)
    while bool(y.sum() < 100):
        y = y + 0.5
    return y
)"),
                 {3, 6}, "different types");
}

/// A block that changes what stands around it has no counterpart.
TEST(ExportRefuses, WhatOnlyDataDecide) {
  expect_refused(program(R"(
    y = x * 1
    if bool(x.sum() > 0):
        y.add_(1)
    return y + x
)"),
                 {2, 6}, "prim::If");
}

TEST(ExportRefuses, WritesThatAreSeenElsewhere) {
  torch::jit::Module module("Net");
  module.register_buffer("state", at::zeros({2, 3}));
  module.define(
      "def forward(self, x):\n    self.state.copy_(x)\n    y = x * 2\n    y[:, 0] = 1\n"
      "    return y\n");
  expect_refused(module, {2, 3}, "aten::copy_");
}

}  // namespace
}  // namespace parsimony::test
