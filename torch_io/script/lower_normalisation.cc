// Normalisations. An affine operand that is left out becomes ones or zeros that no module owns.
#include "parsimony/torch_io/script/lowerings_impl.h"
#include "parsimony/torch_io/script/origins_impl.h"

namespace parsimony::torch_io::script {
namespace {

int64_t channels(Call& call) {
  const Shape x = call.shape(call.tensor(0).value);
  call.require(x.size() >= 2);
  return x[1];
}

void batch_norm(Call& call, double epsilon) {
  call.require(!call.none(3) && !call.none(4));
  const int64_t c = call.shape(call.tensor(3).value).at(0);
  call.give_node("BatchNormalization",
                 {call.tensor(0), or_synthetic(call, 1, c, 1), or_synthetic(call, 2, c, 0),
                  call.tensor(3), call.tensor(4)},
                 {{"epsilon", epsilon}});
}

}  // namespace

Operand or_synthetic(Call& call, size_t i, int64_t size, double number) {
  return call.none(i) ? Operand{call.out.synthetic({size}, number)} : call.tensor(i);
}

/// batch_norm(x, w, b, mean, var, training, momentum, eps, cudnn)
void lower_batch_norm(Call& call) { batch_norm(call, call.number(7)); }

/// layer_norm(x, normalized_shape, w, b, eps, cudnn)
void lower_layer_norm(Call& call) {
  const Operand x = call.tensor(0);
  const std::vector<Element> sizes = call.elements(1);
  const size_t rank = call.rank(x.value);
  call.require(!sizes.empty() && sizes.size() <= rank);
  const Shape shape = call.shape(x.value);
  const Shape normalized(shape.end() - static_cast<std::ptrdiff_t>(sizes.size()), shape.end());
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].run_time != kNone) continue;
    const int dim = static_cast<int>(rank - sizes.size() + i);
    call.out.origins().size_literals.push_back({sizes[i].location, x.value, dim});
  }
  const Operand w = call.none(2) ? Operand{call.out.synthetic(normalized, 1)} : call.tensor(2);
  call.give_node("LayerNormalization", {x, w, call.optional_tensor(3)},
                 {{"axis", -static_cast<int64_t>(sizes.size())}, {"epsilon", call.number(4)}});
}

/// group_norm(x, groups, w, b, eps, cudnn)
void lower_group_norm(Call& call) {
  const int64_t c = channels(call);
  Attributes attributes{{"epsilon", call.number(4)}};
  attributes.with("num_groups", call.integer(1), call.location(1));
  call.give_node("GroupNormalization",
                 {call.tensor(0), or_synthetic(call, 2, c, 1), or_synthetic(call, 3, c, 0)},
                 std::move(attributes));
}

/// _weight_norm(v, g, dim): v by its norm over all other dimensions, times g
void lower_weight_norm(Call& call) {
  const Operand v = call.tensor(0);
  const size_t rank = call.rank(v.value);
  const int64_t kept = call.axis(call.integer(2), rank);
  std::vector<int64_t> axes;
  for (size_t d = 0; d < rank; ++d) {
    if (static_cast<int64_t>(d) != kept) axes.push_back(static_cast<int64_t>(d));
  }
  const ValueId norm =
      call.out.emit("ReduceL2", {v, {call.out.integers(axes)}}, {{"keepdims", int64_t{1}}});
  const ValueId factor = call.out.emit("Div", {call.tensor(1), {norm}});
  call.give_node("Mul", {v, {factor}});
}

/// instance_norm(x, w, b, mean, var, use_input_stats, momentum, eps, cudnn)
void lower_instance_norm(Call& call) {
  if (!call.flag(5)) return batch_norm(call, call.number(7));
  const int64_t c = channels(call);
  call.give_node("InstanceNormalization",
                 {call.tensor(0), or_synthetic(call, 1, c, 1), or_synthetic(call, 2, c, 0)},
                 {{"epsilon", call.number(7)}});
}

}  // namespace parsimony::torch_io::script
