#include "parsimony/graph/operators/builder.h"

#include <algorithm>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/errors.h"

namespace parsimony::operators {

int64_t FactorBuilder::size_of_dim(ValueId value, int dim) const {
  const Shape* shape = view_.shape(value);
  if (shape == nullptr) throw UnsupportedError("an operand is missing");
  if (dim < 0 || static_cast<size_t>(dim) >= shape->size()) {
    throw UnsupportedError("the operands' ranks do not belong together");
  }
  return (*shape)[dim];
}

int FactorBuilder::label(int64_t size, std::string name) {
  factors_.labels.push_back({std::move(name), {}, size});
  return static_cast<int>(factors_.labels.size()) - 1;
}

void FactorBuilder::term(ValueId value, int dim, std::span<const int> labels) {
  size_of_dim(value, dim);  // there is one
  Term term{value, dim, {}};
  for (const int l : labels) {
    if (factors_.labels[l].size > 1) term.labels.push_back(l);
  }
  if (!term.labels.empty()) factors_.terms.push_back(std::move(term));
}

void FactorBuilder::tie(ValueId a, int a_dim, ValueId b, int b_dim) {
  const int64_t size = size_of_dim(a, a_dim);
  if (const int64_t other = size_of_dim(b, b_dim); size != other) {
    throw UnsupportedError("axes of ", size, " and ", other, " should be the same");
  }
  const int l = label(size);
  term(a, a_dim, {{l}});
  term(b, b_dim, {{l}});
}

void FactorBuilder::pin(ValueId value, int dim, const std::string& reason) {
  const int64_t size = size_of_dim(value, dim);
  if (size > 1) factors_.pins.push_back({value, dim, 0, size, reason});
}

void FactorBuilder::map(ValueId a, int a_dim, ValueId b, int b_dim, std::vector<Segment> segments) {
  const int64_t a_size = size_of_dim(a, a_dim);
  const int64_t b_size = size_of_dim(b, b_dim);
  for (const Segment& run : segments) {
    if (run.a_begin < 0 || run.b_begin < 0 || run.count > a_size - run.a_begin ||
        run.count > b_size - run.b_begin) {
      throw UnsupportedError("indices lie outside of an axis");
    }
  }
  factors_.maps.push_back({a, a_dim, b, b_dim, std::move(segments)});
}

void FactorBuilder::pass(const std::vector<bool>& pinned, const std::string& reason) {
  for (size_t d = 0; d < pinned.size(); ++d) {
    const int dim = static_cast<int>(d);
    if (pinned[d]) {
      pin(view_.input(0), dim, reason);
      pin(view_.output(0), dim, reason);
    } else {
      tie(view_.input(0), dim, view_.output(0), dim);
    }
  }
}

int normal_axis(const NodeView& view, int64_t axis, size_t rank) {
  const auto r = static_cast<int64_t>(rank);
  const int64_t normal = axis < 0 ? axis + r : axis;
  if (normal < 0 || normal >= r) {
    throw errors::bad_attribute(view.label(), "axis",
                                std::to_string(axis) + " lies outside rank " + std::to_string(r));
  }
  return static_cast<int>(normal);
}

const Shape& known_shape(const NodeView& view, int i) {
  const Shape* shape = view.in_shape(i);
  if (shape == nullptr) throw UnsupportedError("the shape of operand ", i, " is not known");
  return *shape;
}

Factors factor_along_axes(const NodeView& view, const std::vector<int64_t>& axes,
                          const std::string& reason) {
  FactorBuilder builder(view);
  const size_t rank = known_shape(view, 0).size();
  std::vector<bool> pinned(rank, false);
  for (const int64_t axis : axes) pinned[normal_axis(view, axis, rank)] = true;
  builder.pass(pinned, reason);
  return builder.take();
}

namespace {

/// The producer of the value, looking through nodes that preserve a single number; kNone if there
/// is none.
NodeId maker_of(const Graph& graph, ValueId value) {
  while (value != kNone && graph.value(value).producer != kNone) {
    const NodeId id = graph.value(value).producer;
    const std::string& op = graph.node(id).op;
    if (op != "Unsqueeze" && op != "Squeeze" && op != "Cast" && op != "Identity") return id;
    value = graph.node(id).inputs[0];
  }
  return kNone;
}

/// If a number is the product of a dynamic size and a literal (batch * heads), changes the literal,
/// so that the dynamic size survives. False if it is not.
bool patch_factor(PatchView& view, ValueId value, int64_t requested, std::string_view name) {
  const NodeId id = maker_of(view.before.graph(), value);
  if (id == kNone || view.before.graph().node(id).op != "Mul") return false;
  const NodeView node = view.after.beside(id);
  for (const int literal : {0, 1}) {
    const HostTensor* factor = node.constant(literal);
    const HostTensor* other = node.constant(1 - literal);
    if (factor == nullptr || other == nullptr || node.computed(node.input(literal))) continue;
    if (factor->ints.size() != 1 || other->ints.size() != 1 || other->ints[0] < 1) return false;
    if (requested % other->ints[0] != 0) return false;
    HostTensor to = *factor;
    to.ints[0] = requested / other->ints[0];
    view.set_input_of(id, literal, name, *factor, to);
    return true;
  }
  return false;
}

/// Replaces the elements from `begin` on of one input of a Concat.
void patch_source(PatchView& view, const NodeView& concat, int source, size_t begin,
                  const HostTensor& now, const Shape& requested,
                  const std::vector<bool>& already_right, std::string_view name) {
  HostTensor to = now;
  bool change = false;
  for (size_t i = 0; i < now.ints.size(); ++i) {
    if (already_right[begin + i]) continue;
    to.ints[i] = requested[begin + i];
    change = true;
  }
  if (!change) return;
  if (to.ints.size() == 1 && concat.computed(concat.input(source)) &&
      patch_factor(view, concat.input(source), to.ints[0], name)) {
    return;
  }
  const auto id = concat.graph().nodes.id_of(concat.node());
  view.set_input_of(id, source, name, now, to);
}

/// The integers that the node passes on as they are, or with 1 in place of -1, as PyTorch exports
/// expand: Where(shape == -1, 1, shape). kNone if it does neither.
ValueId passed_on(const Graph& graph, const Node& node) {
  if (node.op == "Cast" || node.op == "Identity" || node.op == "Reshape") return node.inputs[0];
  if (node.op != "Where" || node.inputs.size() != 3) return kNone;
  const NodeId condition = graph.value(node.inputs[0]).producer;
  if (condition == kNone || graph.node(condition).op != "Equal") return kNone;
  return contains(graph.node(condition).inputs, node.inputs[2]) ? node.inputs[2] : kNone;
}

/// Index of the Concat that puts the value together, seen through nodes that pass it on.
NodeId source_concat(const Graph& graph, ValueId value) {
  while (value != kNone && graph.value(value).producer != kNone) {
    const NodeId id = graph.value(value).producer;
    const Node& node = graph.node(id);
    if (node.op == "Concat") return id;
    value = passed_on(graph, node);
  }
  return kNone;
}

}  // namespace

std::vector<IntegerSource> shared_sources(const NodeView& view, int input) {
  const Graph& graph = view.graph();
  const NodeId concat = source_concat(graph, view.input(input));
  if (concat == kNone) return {};
  const bool shared = graph.value(view.input(input)).uses.size() > 1 ||
                      graph.value(graph.node(concat).outputs[0]).uses.size() > 1;
  if (!shared) return {};
  const NodeView sources = view.beside(concat);
  std::vector<IntegerSource> result;
  for (int i = 0; i < sources.inputs(); ++i) {
    const HostTensor* source = sources.constant(i);
    if (source == nullptr) return {};
    const bool computed = sources.computed(sources.input(i));
    const NodeId maker = maker_of(graph, sources.input(i));
    const bool product = computed && maker != kNone && graph.node(maker).op == "Mul";
    result.insert(result.end(), source->ints.size(),
                  product    ? IntegerSource::kProduct
                  : computed ? IntegerSource::kComputed
                             : IntegerSource::kLiteral);
  }
  return result;
}

void patch_shape_operand(PatchView& view, int input, std::string_view name, const Shape& requested,
                         const std::vector<bool>& already_right) {
  if (std::ranges::all_of(already_right, [](bool b) { return b; })) return;
  const HostTensor* now = view.after.constant(input);
  if (now == nullptr) throw UnsupportedError("the integers of operand ", name, " are not known");
  const NodeId concat = source_concat(view.before.graph(), view.before.input(input));
  if (concat != kNone) {
    const NodeView sources = view.after.beside(concat);
    size_t begin = 0;
    for (int i = 0; i < sources.inputs(); ++i) {
      const HostTensor* source = sources.constant(i);
      if (source == nullptr) throw UnsupportedError("a part of operand ", name, " is not known");
      patch_source(view, sources, i, begin, *source, requested, already_right, name);
      begin += source->ints.size();
    }
    return;
  }
  HostTensor to = *now;
  for (size_t i = 0; i < to.ints.size(); ++i) {
    if (!already_right[i]) to.ints[i] = requested[i];
  }
  view.set_input(input, name, to);
}

}  // namespace parsimony::operators
