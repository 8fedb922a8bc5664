// Recurrent layers and cells: input_size, hidden_size, proj_size.

#include <torch/nn/modules/rnn.h>

#include <algorithm>

#include "parsimony/torch_io/errors.h"
#include "parsimony/torch_io/live/layer_kind_impl.h"

namespace parsimony::torch_io::live {
namespace {

struct Sizes {
  int64_t gates = 1;
  int64_t input = 0;
  int64_t hidden = 0;
  int64_t projected = 0;   // 0: no projection
  int64_t directions = 1;  // of a stacked layer's input

  int64_t output() const { return projected > 0 ? projected : hidden; }
};

/// What the weight must be, by the names that libtorch gives: "weight_ih_l0_reverse".
std::vector<int64_t> shape_of(std::string_view name, const Sizes& sizes) {
  if (name.starts_with("bias")) return {sizes.gates * sizes.hidden};
  if (name.starts_with("weight_hh")) return {sizes.gates * sizes.hidden, sizes.output()};
  if (name.starts_with("weight_hr")) return {sizes.projected, sizes.hidden};
  const bool is_first =
      name == "weight_ih" || name == "weight_ih_l0" || name == "weight_ih_l0_reverse";
  return {sizes.gates * sizes.hidden, is_first ? sizes.input : sizes.directions * sizes.output()};
}

/// Every weight is of one set of sizes, and every gate keeps as many units as the others.
void check_weights(const torch::nn::Module& layer, const Sizes& sizes, const LayerEdit& edit) {
  for (const auto& p : layer.named_parameters(/*recurse=*/false)) {
    const std::string name = edit.name_of(p.key());
    if (p.value().sizes() != at::IntArrayRef(shape_of(p.key(), sizes))) {
      throw errors::not_possible(edit.path, "a recurrent layer",
                                 "all its layers and directions have one hidden_size; " + p.key() +
                                     " should be " + to_string(shape_of(p.key(), sizes)) +
                                     ", but is " + to_string(p.value().sizes().vec()));
    }
    if (p.key().starts_with("weight_hr")) continue;
    const auto units = count_in_parts(edit.journal->kept(p.value(), 0), sizes.gates);
    if (std::any_of(units.begin(), units.end(), [&](int64_t n) { return n != sizes.hidden; })) {
      throw errors::uneven_parts(name, "gates", units);
    }
  }
}

template <typename Layer, int64_t kGates>
void follow_recurrent(Layer& layer, const LayerEdit& edit) {
  const auto parameters = layer.named_parameters(/*recurse=*/false);
  Sizes sizes;
  sizes.gates = kGates;
  sizes.input = parameters["weight_ih_l0"].size(1);
  sizes.hidden = parameters["weight_ih_l0"].size(0) / kGates;
  sizes.directions = layer.options.bidirectional() ? 2 : 1;
  if (const at::Tensor* projection = parameters.find("weight_hr_l0")) {
    sizes.projected = projection->size(0);
  }
  check_weights(layer, sizes, edit);
  if (sizes.projected == sizes.hidden) {
    throw errors::not_possible(edit.path, "a recurrent layer",
                               "libtorch takes a projection as wide as what it projects for none; "
                               "both would be " +
                                   std::to_string(sizes.hidden));
  }
  edit.agrees("hidden_size", sizes.hidden);
  layer.options.input_size(sizes.input).hidden_size(sizes.hidden);
  layer.options_base.input_size(sizes.input).hidden_size(sizes.hidden);
  if constexpr (requires { layer.options.proj_size(); }) layer.options.proj_size(sizes.projected);
  layer.options_base.proj_size(sizes.projected);
  layer.flatten_parameters();  // one buffer for all again, where cuDNN computes
}

template <typename Cell, int64_t kGates>
void follow_cell(Cell& cell, const LayerEdit& edit) {
  Sizes sizes;
  sizes.gates = kGates;
  sizes.input = cell.weight_ih.size(1);
  sizes.hidden = cell.weight_hh.size(1);
  check_weights(cell, sizes, edit);
  edit.agrees("hidden_size", sizes.hidden);
  cell.options.input_size(sizes.input).hidden_size(sizes.hidden);
  cell.options_base.input_size(sizes.input).hidden_size(sizes.hidden);
}

template <typename Layer, int64_t kGates>
LayerKind recurrent_kind(std::string_view name) {
  return layer_kind<Layer, follow_recurrent<Layer, kGates>>(name, {"hidden_size"});
}

template <typename Cell, int64_t kGates>
LayerKind cell_kind(std::string_view name) {
  return layer_kind<Cell, follow_cell<Cell, kGates>>(name, {"hidden_size"});
}

}  // namespace

std::vector<LayerKind> recurrent_kinds() {
  using namespace torch::nn;
  return {recurrent_kind<LSTMImpl, 4>("LSTM"),  recurrent_kind<GRUImpl, 3>("GRU"),
          recurrent_kind<RNNImpl, 1>("RNN"),    cell_kind<LSTMCellImpl, 4>("LSTMCell"),
          cell_kind<GRUCellImpl, 3>("GRUCell"), cell_kind<RNNCellImpl, 1>("RNNCell")};
}

}  // namespace parsimony::torch_io::live
