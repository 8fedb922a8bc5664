// Every type of layer computes with its new shapes what the masked one computed.

#include "tests/torch_io/live_editing.h"

namespace parsimony::torch_io {
namespace {

namespace nn = torch::nn;

std::vector<int64_t> image(int64_t channels, int64_t dims) {
  std::vector<int64_t> shape = {2, channels};
  for (int64_t d = 0; d < dims; ++d) shape.push_back(5);
  return shape;
}

template <typename Conv, typename Options>
void check_conv(int64_t dims) {
  Conv conv(Options(6, 8, 3));
  const std::vector<int64_t> in = {0, 2, 3, 5};
  const std::vector<int64_t> out = {1, 2, 4, 6, 7};
  const bool transposed = conv->options.transposed();
  const at::Tensor x = at::randn(image(6, dims));
  const at::Tensor expected = select(conv->forward(masked(x, 1, in)), 1, out);
  edit(*conv, {{"weight", {{transposed ? 1 : 0, 8, out}, {transposed ? 0 : 1, 6, in}}},
               {"bias", {{0, 8, out}}}});
  EXPECT_EQ(conv->options.in_channels(), 4);
  EXPECT_EQ(conv->options.out_channels(), 5);
  expect_computes(conv, expected, select(x, 1, in));
}

TEST(LiveLayers, Convolutions) {
  check_conv<nn::Conv1d, nn::Conv1dOptions>(1);
  check_conv<nn::Conv2d, nn::Conv2dOptions>(2);
  check_conv<nn::Conv3d, nn::Conv3dOptions>(3);
  check_conv<nn::ConvTranspose1d, nn::ConvTranspose1dOptions>(1);
  check_conv<nn::ConvTranspose2d, nn::ConvTranspose2dOptions>(2);
  check_conv<nn::ConvTranspose3d, nn::ConvTranspose3dOptions>(3);
}

/// The channels of `in` reach those of `out` in `groups_after` groups.
template <typename Conv, typename Options>
void check_groups(int64_t groups, const std::vector<int64_t>& in, const std::vector<int64_t>& out,
                  const std::vector<int64_t>& within, int64_t groups_after) {
  Conv conv(Options(8, 8, 3).groups(groups));
  const bool transposed = conv->options.transposed();
  const at::Tensor x = at::randn(image(8, 2));
  const at::Tensor expected = select(conv->forward(masked(x, 1, in)), 1, out);
  const int64_t size = 8 / groups;
  edit(*conv,
       {{"weight", {{0, 8, transposed ? in : out}, {1, size, within}}}, {"bias", {{0, 8, out}}}});
  EXPECT_EQ(conv->options.groups(), groups_after);
  expect_computes(conv, expected, select(x, 1, in));
}

TEST(LiveLayers, GroupsOfConvolutionsFollowFromWhatStays) {
  using Conv = nn::Conv2d;
  using Options = nn::Conv2dOptions;
  check_groups<Conv, Options>(8, {0, 3, 7}, {0, 3, 7}, {0}, 3);           // depthwise
  check_groups<Conv, Options>(2, {1, 2, 5, 6}, {0, 3, 4, 5}, {1, 2}, 2);  // within groups
  check_groups<Conv, Options>(4, {0, 1, 4, 5}, {0, 1, 4, 5}, {0, 1}, 2);  // whole groups
  check_groups<Conv, Options>(4, {1, 5}, {0, 4}, {1}, 2);                 // both
  check_groups<nn::ConvTranspose2d, nn::ConvTranspose2dOptions>(8, {2, 5}, {2, 5}, {0}, 2);
  check_groups<nn::ConvTranspose2d, nn::ConvTranspose2dOptions>(2, {0, 1, 6, 7}, {1, 3, 5, 7},
                                                                {1, 3}, 2);
}

TEST(LiveLayers, UnevenGroupsAreRefused) {
  nn::Conv2d conv(nn::Conv2dOptions(8, 8, 3).groups(2));
  const std::string text = message_of<UnsupportedError>([&] {
    edit(*conv, {{"weight", {{0, 8, {0, 1, 2, 4}}}}, {"bias", {{0, 8, {0, 1, 2, 4}}}}});
  });
  EXPECT_EQ(text,
            "tensor \"weight\": all groups must keep the same number of indices, found [3, 1]");
  EXPECT_EQ(conv->weight.size(0), 8);
}

TEST(LiveLayers, GroupsCanBeSet) {
  nn::Conv2d conv(nn::Conv2dOptions(8, 8, 1).groups(4));
  ModuleEditor editor(*conv);
  editor.slice("weight", std::vector<AxisKeep>{{0, 8, {0, 1, 2, 3}}});
  editor.slice("bias", std::vector<AxisKeep>{{0, 8, {0, 1, 2, 3}}});
  const std::vector<int64_t> two = {2};
  editor.set_attribute("", "group", two);
  editor.commit();
  EXPECT_EQ(conv->options.groups(), 2);
  const std::vector<int64_t> three = {3};
  editor.set_attribute("", "group", three);
  EXPECT_EQ(message_of<ModelError>([&] { editor.commit(); }),
            "the module: attribute \"groups\": 3 do not divide 4 channels");
  EXPECT_EQ(message_of<ModelError>([&] { editor.set_attribute("", "stride", two); }),
            "the module: attribute \"stride\": Conv2d has no such attribute that can be changed");
}

TEST(LiveLayers, BiasAndWeightMustAgree) {
  nn::Conv2d conv(nn::Conv2dOptions(4, 8, 3));
  EXPECT_EQ(message_of<ModelError>([&] {
              edit(*conv, {{"weight", {{0, 8, {0, 1}}}}});
            }),
            "tensor \"bias\": does not fit its layer: expected [2], found [8]");
}

TEST(LiveLayers, LinearAndBilinear) {
  const std::vector<int64_t> in = {0, 2, 5};
  const std::vector<int64_t> out = {1, 3};
  nn::Linear linear(6, 4);
  const at::Tensor x = at::randn({3, 6});
  at::Tensor expected = select(linear->forward(masked(x, 1, in)), 1, out);
  edit(*linear, {{"weight", {{0, 4, out}, {1, 6, in}}}, {"bias", {{0, 4, out}}}});
  expect_computes(linear, expected, select(x, 1, in));

  nn::Bilinear bilinear(6, 5, 4);
  const at::Tensor y = at::randn({3, 5});
  const std::vector<int64_t> in2 = {0, 1, 4};
  expected = select(bilinear->forward(masked(x, 1, in), masked(y, 1, in2)), 1, out);
  edit(*bilinear, {{"weight", {{0, 4, out}, {1, 6, in}, {2, 5, in2}}}, {"bias", {{0, 4, out}}}});
  expect_computes(bilinear, expected, select(x, 1, in), select(y, 1, in2));
}

template <typename Norm, typename Options>
void check_feature_norm(int64_t dims, bool tracks) {
  Norm norm(Options(6).affine(true).track_running_stats(tracks));
  const at::NoGradGuard no_grad;
  norm->weight.uniform_(0.5, 2);
  norm->bias.uniform_(-1, 1);
  const at::Tensor x = at::randn(image(6, dims));
  norm->forward(x);  // running statistics that differ by channel
  norm->eval();
  const std::vector<int64_t> keep = {0, 3, 5};
  const at::Tensor expected = select(norm->forward(x), 1, keep);
  std::vector<Cut> cuts = {{"weight", {{0, 6, keep}}}, {"bias", {{0, 6, keep}}}};
  if (tracks) {
    cuts.push_back({"running_mean", {{0, 6, keep}}});
    cuts.push_back({"running_var", {{0, 6, keep}}});
  }
  edit(*norm, cuts);
  EXPECT_EQ(norm->options.num_features(), 3);
  EXPECT_FALSE(norm->is_training());
  expect_computes(norm, expected, select(x, 1, keep));
}

TEST(LiveLayers, BatchAndInstanceNorm) {
  check_feature_norm<nn::BatchNorm1d, nn::BatchNormOptions>(1, true);
  check_feature_norm<nn::BatchNorm2d, nn::BatchNormOptions>(2, true);
  check_feature_norm<nn::BatchNorm3d, nn::BatchNormOptions>(3, true);
  check_feature_norm<nn::BatchNorm2d, nn::BatchNormOptions>(2, false);
  check_feature_norm<nn::InstanceNorm1d, nn::InstanceNormOptions>(1, false);
  check_feature_norm<nn::InstanceNorm2d, nn::InstanceNormOptions>(2, true);
  check_feature_norm<nn::InstanceNorm3d, nn::InstanceNormOptions>(3, false);
}

TEST(LiveLayers, BatchNormWithoutParameters) {
  nn::BatchNorm1d norm(nn::BatchNormOptions(4).affine(false));
  edit(*norm, {{"running_mean", {{0, 4, {1, 2}}}}, {"running_var", {{0, 4, {1, 2}}}}});
  EXPECT_EQ(norm->options.num_features(), 2);
  EXPECT_EQ(norm->forward(at::randn({3, 2})).size(1), 2);
}

TEST(LiveLayers, LayerNorm) {
  nn::LayerNorm norm(nn::LayerNormOptions({3, 6}));
  const at::NoGradGuard no_grad;
  norm->weight.uniform_(0.5, 2);
  const std::vector<int64_t> keep = {0, 1, 4, 5};
  const at::Tensor x = at::randn({2, 3, 4});
  const at::Tensor expected =
      at::layer_norm(x, {3, 4}, select(norm->weight, 1, keep), select(norm->bias, 1, keep));
  edit(*norm, {{"weight", {{1, 6, keep}}}, {"bias", {{1, 6, keep}}}});
  expect_computes(norm, expected, x);
}

TEST(LiveLayers, LayersWithoutTensorsAreTold) {
  nn::Sequential net(nn::LayerNorm(nn::LayerNormOptions({6}).elementwise_affine(false)),
                     nn::GroupNorm(nn::GroupNormOptions(3, 6).affine(false)),
                     nn::Unflatten(nn::UnflattenOptions(1, {2, 3})));
  ModuleEditor editor(*net);
  const std::vector<int64_t> four = {4};
  const std::vector<int64_t> two = {2};
  const std::vector<int64_t> sizes = {2, 2};
  editor.set_attribute("0", "normalized_shape", four);
  editor.set_attribute("1", "num_groups", two);
  editor.set_attribute("2", "sizes", sizes);
  editor.commit();
  const at::Tensor x = at::randn({5, 4});
  const at::Tensor expected = at::group_norm(at::layer_norm(x, {4}), 2).view({5, 2, 2});
  expect_close(net->forward(x), expected);
  editor.rollback();
  EXPECT_EQ(net->forward(at::randn({5, 6})).sizes(), at::IntArrayRef({5, 2, 3}));
}

TEST(LiveLayers, GroupNorm) {
  nn::GroupNorm norm(3, 6);
  const std::vector<int64_t> keep = {0, 1, 4, 5};
  const at::Tensor x = at::randn({2, 6, 3});
  const at::Tensor expected = select(norm->forward(x), 1, keep);
  edit(*norm, {{"weight", {{0, 6, keep}}}, {"bias", {{0, 6, keep}}}});
  EXPECT_EQ(norm->options.num_groups(), 2);
  expect_computes(norm, expected, select(x, 1, keep));
}

TEST(LiveLayers, PReLU) {
  nn::PReLU prelu(nn::PReLUOptions().num_parameters(4));
  const at::NoGradGuard no_grad;
  prelu->weight.uniform_(0, 1);
  const at::Tensor x = at::randn({3, 4});
  const at::Tensor expected = select(prelu->forward(x), 1, {1, 2});
  edit(*prelu, {{"weight", {{0, 4, {1, 2}}}}});
  expect_computes(prelu, expected, select(x, 1, {1, 2}));
}

TEST(LiveLayers, Embeddings) {
  nn::Embedding table(nn::EmbeddingOptions(7, 4).padding_idx(5));
  const at::Tensor words = at::tensor({1, 5, 6}, at::kLong);
  at::Tensor expected = select(table->forward(words), 1, {0, 3});
  edit(*table, {{"weight", {{0, 7, {1, 5, 6}}, {1, 4, {0, 3}}}}});
  EXPECT_EQ(*table->options.padding_idx(), 1);
  expect_computes(table, expected, at::arange(3));
  EXPECT_THROW(edit(*table, {{"weight", {{0, 3, {0, 2}}}}}), UnsupportedError);

  nn::EmbeddingBag bag(7, 4);
  expected = select(bag->forward(words.view({1, 3})), 1, {0, 3});
  edit(*bag, {{"weight", {{1, 4, {0, 3}}}}});
  expect_computes(bag, expected, words.view({1, 3}));
  EXPECT_EQ(bag->options.embedding_dim(), 2);
}

TEST(LiveLayers, EmbeddingOfGivenWeights) {
  nn::Embedding table = nn::Embedding::from_pretrained(at::randn({5, 4}));
  edit(*table, {{"weight", {{1, 4, {0, 3}}}}});
  expect_computes(table, table->weight, at::arange(5));
  EXPECT_FALSE(table->weight.requires_grad());
}

}  // namespace
}  // namespace parsimony::torch_io
