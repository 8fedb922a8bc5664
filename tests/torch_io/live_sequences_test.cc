// Recurrent layers and attention: what can be cut, against the masked layer, and what cannot.

#include "tests/torch_io/live_editing.h"

namespace parsimony::torch_io {
namespace {

namespace nn = torch::nn;

/// The kept indices of an axis that holds `blocks` blocks of `size`.
std::vector<int64_t> in_blocks(const std::vector<int64_t>& keep, int64_t size, int64_t blocks) {
  std::vector<int64_t> result;
  for (int64_t b = 0; b < blocks; ++b) {
    for (const int64_t index : keep) result.push_back(b * size + index);
  }
  return result;
}

const std::vector<int64_t> kInput = {0, 2, 3};
const std::vector<int64_t> kHidden = {1, 2, 4, 5};
constexpr int64_t kInputSize = 5;
constexpr int64_t kHiddenSize = 6;

/// The cuts of all weights of a recurrent layer or cell.
std::vector<Cut> recurrent_cuts(const nn::Module& layer, int64_t gates, int64_t directions) {
  std::vector<Cut> cuts;
  for (const auto& p : layer.named_parameters()) {
    std::vector<AxisKeep> axes = {{0, gates * kHiddenSize, in_blocks(kHidden, kHiddenSize, gates)}};
    const bool first = p.key().find("_l1") == std::string::npos;
    if (p.key().starts_with("weight_ih") && first) {
      axes.push_back({1, kInputSize, kInput});
    } else if (p.key().starts_with("weight_ih")) {
      axes.push_back({1, directions * kHiddenSize, in_blocks(kHidden, kHiddenSize, directions)});
    } else if (p.key().starts_with("weight_hh")) {
      axes.push_back({1, kHiddenSize, kHidden});
    }
    cuts.push_back({p.key(), axes});
  }
  return cuts;
}

/// Nothing flows through what is cut: the weights that would read it are zero.
void mask_readers(const nn::Module& layer, const std::vector<Cut>& cuts) {
  const at::NoGradGuard no_grad;
  for (const Cut& cut : cuts) {
    at::Tensor weight = layer.named_parameters()[cut.tensor];
    if (cut.axes.size() == 2) weight.copy_(masked(weight, 1, cut.axes[1].keep));
  }
}

template <typename Layer, typename Options>
void check_recurrent(int64_t gates, int64_t layers, bool bidirectional) {
  Layer layer(Options(kInputSize, kHiddenSize).num_layers(layers).bidirectional(bidirectional));
  const int64_t directions = bidirectional ? 2 : 1;
  const std::vector<Cut> cuts = recurrent_cuts(*layer, gates, directions);
  mask_readers(*layer, cuts);
  const at::Tensor x = at::randn({7, 2, kInputSize});
  const at::Tensor expected =
      select(std::get<0>(layer->forward(x)), 2, in_blocks(kHidden, kHiddenSize, directions));
  edit(*layer, cuts);
  EXPECT_EQ(layer->options.hidden_size(), 4);
  expect_close(std::get<0>(layer->forward(select(x, 2, kInput))), expected);
  const auto clone = std::dynamic_pointer_cast<typename Layer::ContainedType>(layer->clone());
  expect_close(std::get<0>(clone->forward(select(x, 2, kInput))), expected);
}

TEST(LiveRecurrent, LayersStackedAndInBothDirections) {
  for (const auto& [layers, bidirectional] : {std::pair(1, false), {2, false}, {2, true}}) {
    check_recurrent<nn::LSTM, nn::LSTMOptions>(4, layers, bidirectional);
    check_recurrent<nn::GRU, nn::GRUOptions>(3, layers, bidirectional);
    check_recurrent<nn::RNN, nn::RNNOptions>(1, layers, bidirectional);
  }
}

TEST(LiveRecurrent, ProjectedLstm) {
  nn::LSTM lstm(nn::LSTMOptions(5, 6).proj_size(4));
  const std::vector<int64_t> projected = {0, 3};
  std::vector<Cut> cuts = recurrent_cuts(*lstm, 4, 1);
  for (Cut& cut : cuts) {
    if (cut.tensor == "weight_hh_l0") cut.axes[1] = {1, 4, projected};
    if (cut.tensor == "weight_hr_l0") cut.axes = {{0, 4, projected}, {1, 6, kHidden}};
  }
  mask_readers(*lstm, cuts);
  const at::Tensor x = at::randn({7, 2, 5});
  const at::Tensor expected = select(std::get<0>(lstm->forward(x)), 2, projected);
  edit(*lstm, cuts);
  EXPECT_EQ(lstm->options.proj_size(), 2);
  expect_close(std::get<0>(lstm->forward(select(x, 2, kInput))), expected);
}

at::Tensor state_of(const at::Tensor& hidden) { return hidden; }
at::Tensor state_of(const std::tuple<at::Tensor, at::Tensor>& state) { return std::get<0>(state); }

template <typename Cell>
void check_cell(int64_t gates) {
  Cell cell(kInputSize, kHiddenSize);
  const std::vector<Cut> cuts = recurrent_cuts(*cell, gates, 1);
  const at::Tensor x = at::randn({2, kInputSize});
  const at::Tensor expected = select(state_of(cell->forward(masked(x, 1, kInput))), 1, kHidden);
  edit(*cell, cuts);
  EXPECT_EQ(cell->options.input_size(), 3);
  expect_close(state_of(cell->forward(select(x, 1, kInput))), expected);
}

TEST(LiveRecurrent, Cells) {
  check_cell<nn::LSTMCell>(4);
  check_cell<nn::GRUCell>(3);
  check_cell<nn::RNNCell>(1);
}

TEST(LiveRecurrent, LayersOfDifferentSizesAreRefused) {
  nn::LSTM lstm(nn::LSTMOptions(5, 6).num_layers(2));
  std::vector<Cut> cuts = recurrent_cuts(*lstm, 4, 1);
  std::erase_if(cuts, [](const Cut& cut) { return cut.tensor.ends_with("_l1"); });
  EXPECT_EQ(
      message_of<UnsupportedError>([&] { edit(*lstm, cuts); }),
      "the module: a recurrent layer cannot be pruned like this: all its layers and directions "
      "have one hidden_size; weight_ih_l1 should be [16, 4], but is [24, 6]");
  EXPECT_EQ(std::get<0>(lstm->forward(at::randn({3, 1, 5}))).size(2), 6);
}

TEST(LiveRecurrent, GatesMustKeepTheSameUnits) {
  nn::GRUCell cell(2, 4);
  std::vector<int64_t> rows = {0, 1, 2, 4, 8, 9};
  EXPECT_EQ(
      message_of<UnsupportedError>([&] {
        edit(*cell, {{"weight_ih", {{0, 12, rows}}},
                     {"weight_hh", {{0, 12, rows}, {1, 4, {0, 1}}}},
                     {"bias_ih", {{0, 12, rows}}},
                     {"bias_hh", {{0, 12, rows}}}});
      }),
      "tensor \"weight_ih\": all gates must keep the same number of indices, found [3, 1, 2]");
}

struct AttentionCuts {
  std::vector<int64_t> inputs;
  std::vector<int64_t> rows;
};

/// Of an attention over 12 inputs with heads of 4.
std::vector<Cut> attention_cuts(const AttentionCuts& keep) {
  const std::vector<int64_t> all_rows = in_blocks(keep.rows, 12, 3);
  return {{"in_proj_weight", {{0, 36, all_rows}, {1, 12, keep.inputs}}},
          {"in_proj_bias", {{0, 36, all_rows}}},
          {"out_proj.weight", {{1, 12, keep.rows}}}};
}

TEST(LiveAttention, WholeHeadsAndAsManyInputs) {
  nn::MultiheadAttention attention(12, 3);
  const AttentionCuts keep = {{0, 1, 3, 5, 7, 8, 10, 11}, {0, 1, 2, 3, 8, 9, 10, 11}};
  const at::NoGradGuard no_grad;
  attention->in_proj_bias.uniform_(-1, 1);
  attention->out_proj->weight.copy_(masked(attention->out_proj->weight, 1, keep.rows));
  const at::Tensor x = masked(at::randn({5, 2, 12}), 2, keep.inputs);
  const at::Tensor expected = std::get<0>(attention->forward(x, x, x));
  edit(*attention, attention_cuts(keep));
  EXPECT_EQ(attention->options.num_heads(), 2);
  EXPECT_EQ(attention->options.embed_dim(), 8);
  const at::Tensor small = select(x, 2, keep.inputs);
  expect_close(std::get<0>(attention->forward(small, small, small)), expected);
}

TEST(LiveAttention, KeysOfAnotherWidth) {
  nn::MultiheadAttention attention(nn::MultiheadAttentionOptions(12, 3).kdim(6).vdim(6));
  const std::vector<int64_t> keep = {0, 2, 5};
  const at::Tensor x = at::randn({5, 2, 12});
  const at::Tensor memory = masked(at::randn({4, 2, 6}), 2, keep);
  const at::Tensor expected = std::get<0>(attention->forward(x, memory, memory));
  edit(*attention, {{"k_proj_weight", {{1, 6, keep}}}, {"v_proj_weight", {{1, 6, keep}}}});
  EXPECT_EQ(attention->options.kdim(), 3);
  const at::Tensor small = select(memory, 2, keep);
  expect_close(std::get<0>(attention->forward(x, small, small)), expected);
}

TEST(LiveAttention, ItsOutputMayHaveAnyWidth) {
  nn::MultiheadAttention attention(12, 3);
  const at::Tensor x = at::randn({5, 2, 12});
  const at::Tensor expected = select(std::get<0>(attention->forward(x, x, x)), 2, {1, 4});
  edit(*attention, {{"out_proj.weight", {{0, 12, {1, 4}}}}, {"out_proj.bias", {{0, 12, {1, 4}}}}});
  expect_close(std::get<0>(attention->forward(x, x, x)), expected);
}

TEST(LiveAttention, WhatItsForwardCannotDoIsRefused) {
  nn::MultiheadAttention attention(12, 3);
  const std::string prefix = "the module: MultiheadAttention cannot be pruned like this: ";
  const auto refusal = [&](const std::vector<Cut>& cuts) {
    return message_of<UnsupportedError>([&] { edit(*attention, cuts); });
  };
  const std::vector<int64_t> eight = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::vector<int64_t> nine = {0, 1, 2, 4, 5, 6, 8, 9, 10};
  const std::vector<int64_t> all = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  EXPECT_EQ(refusal(attention_cuts({all, eight})),
            prefix +
                "its forward requires heads * head_dim inputs; found 12 inputs, 2 heads "
                "of 4");
  EXPECT_EQ(refusal(attention_cuts({nine, nine})),
            prefix +
                "heads can only be removed whole, since its forward scales by the head size; "
                "head 0 would be kept partly");
  EXPECT_EQ(refusal({{"in_proj_weight", {{0, 36, in_blocks(eight, 18, 2)}}}}),
            prefix + "queries, keys and values must keep the same heads");
  std::vector<Cut> cuts = attention_cuts({eight, eight});
  cuts.pop_back();
  EXPECT_EQ(refusal(cuts),
            prefix + "out_proj must read the heads' outputs; found 12 inputs, 8 values");
  EXPECT_EQ(attention->options.embed_dim(), 12);
}

}  // namespace
}  // namespace parsimony::torch_io
