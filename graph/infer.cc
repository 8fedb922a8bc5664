#include "parsimony/graph/infer.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/graph/attributes.h"
#include "parsimony/graph/growing_facts.h"
#include "parsimony/graph/interface.h"
#include "parsimony/graph/open_sizes_impl.h"
#include "parsimony/graph/operators/families.h"
#include "parsimony/graph/operators/match.h"

namespace parsimony {
namespace {

/// A size or type of the probe that the file does not allow.
ConfigError wrong_input(std::string_view input, std::string_view has, std::string_view given) {
  return ConfigError("input ", in_quotes(input), " has ", has, ", but ", given,
                     " was given for it");
}

constexpr int64_t kMostIntegers = 65536;
constexpr int64_t kMostFloats = 32;

constexpr size_t kMostDims = 64;  // of tensors of libtorch and NumPy

}  // namespace

/// Fixes symbolic dimensions: the first of an input by one size, the others by another; the same
/// name has the same size everywhere.
class Symbols {
 public:
  explicit Symbols(const Probe& probe) : probe_(probe) {}

  /// @param number  of the input; kNone for one of a body
  Shape fix_input(const Value& value, int number) {
    Shape shape = *value.declared;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] >= 0) continue;
      const auto own = probe_.sizes.find({number, static_cast<int>(d)});
      const int64_t fallback = own != probe_.sizes.end() ? own->second
                               : d == 0                  ? probe_.first
                                                         : probe_.other;
      if (symbol_of(value, d).empty()) {
        shape[d] = fallback;
      } else {
        shape[d] = sizes_.try_emplace(std::string(symbol_of(value, d)), fallback).first->second;
      }
    }
    return shape;
  }

  void learn(const Value& value, const Shape& actual) {
    if (!value.declared || value.declared->size() != actual.size()) return;
    for (size_t d = 0; d < actual.size(); ++d) {
      if (!symbol_of(value, d).empty())
        sizes_.insert_or_assign(std::string(symbol_of(value, d)), actual[d]);
    }
  }

  /// The declared shape, if all of it is known.
  std::optional<Shape> resolve(const Value& value) const {
    if (!value.declared) return std::nullopt;
    Shape shape = *value.declared;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] >= 0) continue;
      const auto it = sizes_.find(symbol_of(value, d));
      if (symbol_of(value, d).empty() || it == sizes_.end()) return std::nullopt;
      shape[d] = it->second;
    }
    return shape;
  }

 private:
  const Probe& probe_;
  std::map<std::string, int64_t, std::less<>> sizes_;
};

/// Facts about inputs of bodies that an earlier inference found out.
struct GrowingFacts::Turns {
  std::set<ValueId> varies;          ///< the shape changes from turn to turn
  std::map<ValueId, Shape> tensors;  ///< of lists that are empty at first

  bool empty() const { return varies.empty() && tensors.empty(); }
};

class GrowingFacts::Inference {
 public:
  Inference(const Graph& graph, const Probe& probe, bool may_assume, Turns& turns)
      : graph_(graph), probe_(probe), symbols_(probe), turns_(turns) {
    facts_.may_assume = may_assume;
  }

  /// Reads what was added to the graph.
  void advance() {
    const ValueId first_value = facts_.shapes.next_id();
    resize(graph_.values.size());
    entered_.resize(graph_.bodies.size(), false);
    for (ValueId v = first_value; graph_.values.has(v); ++v) read_weight(v);
    for (; inputs_ < graph_.inputs.size(); ++inputs_) read_input(inputs_);
    for (; graph_.nodes.has(next_); ++next_) {
      const Node& node = graph_.nodes[next_];
      try {
        enter(node.body);
        for (const BodyId body : node.bodies) enter(body);
        visit(node);
        leave(node);
      } catch (const ModelError& error) {
        // A branch that is not taken need not be consistent.
        if (node.body == kNone) {
          note_sizes(node);
          throw ShapeError(next_, error.what());
        }
        for (const ValueId v : node.outputs) {
          if (v != kNone) facts_.shapes[v].reset();
        }
      }
    }
  }

  /// Goes back to where these had not been read.
  void forget(NodeId node, ValueId value) {
    for (NodeId n = node; n < next_; ++n) {
      for (const BodyId body : graph_.nodes[n].bodies) entered_[body] = false;
    }
    next_ = std::min(next_, node);
    resize(std::min(facts_.shapes.size(), value.index()));
  }

  Facts& facts() { return facts_; }
  const std::vector<int64_t>& sizes_at_fault() const { return sizes_at_fault_; }

  /// True if inputs of bodies with varying shapes were found: inference has to be repeated.
  bool must_repeat() const { return must_repeat_; }

 private:
  void note_sizes(const Node& node) {
    for (const ValueId v : node.inputs) {
      if (v == kNone || !facts_.shapes[v]) continue;
      sizes_at_fault_.insert(sizes_at_fault_.end(), facts_.shapes[v]->begin(),
                             facts_.shapes[v]->end());
    }
    sort_unique(sizes_at_fault_);
  }

  void resize(size_t values) {
    facts_.shapes.resize(values);
    facts_.constants.resize(values);
    facts_.computed.resize(values, false);
  }

  /// Gives the inputs of a body their shapes, once.
  void enter(BodyId id) {
    if (id == kNone || entered_[id]) return;
    const Body& body = graph_.bodies[id];
    entered_[id] = body.owner != kNone;
    enter(body.around);
    if (body.owner == kNone) return;
    const Node& owner = graph_.node(body.owner);
    if (!joins_bodies(owner) && facts_.may_assume && !probe_.open) return enter_alone(body);
    const Shapes shapes = operators::shapes_inside(NodeView(graph_, owner, facts_));
    for (size_t i = 0; i < body.inputs.size(); ++i) {
      const ValueId v = body.inputs[i];
      const bool known =
          i < shapes.size() && shapes[i] && (!turns_.varies.contains(v) || facts_.may_assume);
      settle(v, known ? shapes[i] : fixed_shape(graph_.values[v]));
      const auto of_list = turns_.tensors.find(v);
      if (of_list != turns_.tensors.end()) settle(v, of_list->second);
    }
  }

  /// Gives the inputs of a body shapes for one of its runs, where nothing is known of how the
  /// operator calls it.
  void enter_alone(const Body& body) {
    Symbols symbols(probe_);
    for (const ValueId v : body.inputs) {
      const Value& value = graph_.values[v];
      if (value.declared) settle(v, symbols.fix_input(value, kNone));
    }
  }

  /// The declared shape if it leaves nothing open: a symbol may be another size at every turn.
  static std::optional<Shape> fixed_shape(const Value& value) {
    const auto& shape = value.declared;
    return shape && !is_open(*shape) ? shape : std::nullopt;
  }

  /// A shape of more dimensions than tensors have is not followed: rules take time by their square.
  void settle(ValueId v, std::optional<Shape> shape) {
    if (shape && shape->size() > kMostDims) shape.reset();
    facts_.shapes[v] = std::move(shape);
  }

  /// Loop-carried values must keep their shape, but for a list that gets its first tensors.
  void leave(const Node& node) {
    const NodeView view(graph_, node, facts_);
    for (const auto& [v, output] : operators::carried(view)) {
      const auto& shape = facts_.shapes[v];
      const auto& next = facts_.shapes[output];
      if (turns_.varies.contains(v) || !shape || shape == next) continue;
      if (shape == Shape{0} && next && facts_.may_assume && !turns_.tensors.contains(v)) {
        turns_.tensors[v] = *next;
      } else {
        turns_.varies.insert(v);
      }
      must_repeat_ = true;
    }
  }

  void read_weight(ValueId v) {
    const Value& value = graph_.values[v];
    if (value.weight == kNone) {
      // Without a producer: a constant that the front end does not read.
      const bool opaque = value.producer == kNone && !value.is_input;
      if (opaque) settle(v, fixed_shape(value));
      return want_countable(v);
    }
    const Weight& weight = graph_.weight(value.weight);
    settle(v, weight.dims);
    if (is_literal(weight.dtype, weight.count())) facts_.constants[v] = to_host(weight);
  }

  void read_input(size_t i) {
    const ValueId v = graph_.inputs[i];
    const Value& value = graph_.values[v];
    const bool specified = i < probe_.inputs.size();
    if (specified && !probe_.inputs[i].open) {
      const InputSpec& spec = probe_.inputs[i];
      if (value.declared && !fits_declared(spec.dims, *value.declared)) {
        throw wrong_input(value.name, "shape " + to_string(*value.declared), to_string(spec.dims));
      }
      const bool typed = !spec.value && spec.dtype != DType::kUnknown;
      if (typed && value.dtype != DType::kUnknown && value.dtype != spec.dtype) {
        throw wrong_input(value.name, "elements of " + std::string(name_of(value.dtype)),
                          name_of(spec.dtype));
      }
      settle(v, spec.dims);
      symbols_.learn(value, spec.dims);
    } else if (value.declared && (!probe_.open || !is_open(*value.declared))) {
      settle(v, symbols_.fix_input(value, static_cast<int>(i)));
    }
    const auto& shape = facts_.shapes[v];
    if (specified && probe_.inputs[i].value && shape && element_count(*shape) == 1) {
      const DType type = is_floating(value.dtype) ? value.dtype : DType::kInt64;
      facts_.constants[v] = HostTensor::of(*probe_.inputs[i].value, type);
      facts_.constants[v]->dims = *shape;
    }
    want_countable(v);
  }

  void want_countable(ValueId v) const {
    if (!facts_.shapes[v]) return;
    try {
      element_count(*facts_.shapes[v]);
    } catch (const ModelError&) {
      throw errors::bad_dimension(graph_.values[v].name, to_string(*facts_.shapes[v]));
    }
  }

  void visit(const Node& node) {
    const NodeView view(graph_, node, facts_);
    if (folds(view) && fold(view)) return;
    const OpSchema& schema = schema_of(node);
    Shapes shapes(node.outputs.size());
    if (schema.infer != nullptr) {
      shapes = schema.infer(view);
    } else if (!schema.line.empty()) {
      shapes = infer_line(*compiled(schema), view);
    }
    shapes.resize(node.outputs.size());
    if (schema.infer == nullptr && schema.line.empty()) ask_source(view, shapes);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNone) continue;
      const ValueId v = node.outputs[i];
      settle(v, shapes[i] ? std::move(shapes[i]) : symbols_.resolve(graph_.values[v]));
      if (facts_.shapes[v]) element_count(*facts_.shapes[v]);
    }
  }

  /// For the results that the operator's row does not tell.
  void ask_source(const NodeView& view, Shapes& shapes) const {
    const auto& results = view.node().outputs;
    const auto lacks = [&](size_t i) { return results[i] != kNone && !shapes[i]; };
    size_t first = 0;
    while (first < shapes.size() && !lacks(first)) ++first;
    if (first == shapes.size()) return;
    Shapes others = graph_.source->infer(view);
    others.resize(shapes.size());
    for (size_t i = first; i < shapes.size(); ++i) {
      if (lacks(i)) shapes[i] = std::move(others[i]);
    }
  }

  /// Is it read as scales only?
  bool gives_scales(const Node& node) const {
    const auto& uses = graph_.value(node.outputs.front()).uses;
    return !uses.empty() && std::ranges::all_of(uses, [&](const Use& use) {
      return use.input > 0 && has_trait(graph_.node(use.node), kRescales);
    });
  }

  /// Arithmetic on shapes, integers and scales, but not on weights: those must stay prunable.
  bool folds(const NodeView& view) const {
    if (has_trait(view.node(), kReadsSizes)) return true;
    if (has_trait(view.node(), kTakesElement)) return view.constant(0) != nullptr;
    if (has_trait(view.node(), kFills) && view.constant(0) != nullptr) return makes_integers(view);
    if (repeats_number(view)) return false;  // a tensor of any size, which may shrink
    for (int i = 0; i < view.inputs(); ++i) {
      if (!view.has_input(i) || !reads_elements(view.node(), i)) continue;
      const HostTensor* constant = view.constant(i);
      if (constant == nullptr) return false;
      const bool plain = !constant->floating() || constant->count() == 1;
      if (!plain && !view.computed(view.input(i)) && !gives_scales(view.node())) {
        return false;  // a short weight, not a size
      }
    }
    return view.inputs() > 0;
  }

  /// Sizes lie in lists; a number along more axes is none of them.
  static bool repeats_number(const NodeView& view) {
    const HostTensor* number = view.constant(0);
    if (schema_of(view.node()).factor != operators::factor_expand) return false;
    if (number == nullptr || number->count() != 1) return false;
    const Shape* asked = view.in_shape(1);
    const size_t axes =
        asked == nullptr || asked->empty() ? 0 : static_cast<size_t>(asked->front());
    return number->floating() || std::max(axes, number->dims.size()) > 1;
  }

  static bool makes_integers(const NodeView& view) {
    return attr_if<std::vector<int64_t>>(view.node(), "value") != nullptr;
  }

  bool fold(const NodeView& view) {
    auto results = evaluate(view);
    if (!results) return false;
    for (size_t i = 0; i < results->size() && i < view.node().outputs.size(); ++i) {
      if (view.node().outputs[i] == kNone || (*results)[i].dims.size() > kMostDims) continue;
      const ValueId v = view.node().outputs[i];
      facts_.shapes[v] = (*results)[i].dims;
      facts_.constants[v] = std::move((*results)[i]);
      facts_.computed[v] = true;
    }
    return true;
  }

  const Graph& graph_;
  const Probe& probe_;
  Symbols symbols_;
  Facts facts_;
  Turns& turns_;
  IdVector<BodyId, bool> entered_;
  size_t inputs_ = 0;  ///< read so far
  NodeId next_{0};     ///< not visited yet
  bool must_repeat_ = false;
  std::vector<int64_t> sizes_at_fault_;
};

GrowingFacts::GrowingFacts(const Graph& graph, const Probe& probe)
    : graph_(graph), probe_(probe), turns_(std::make_unique<Turns>()) {}

GrowingFacts::~GrowingFacts() = default;

const Facts& GrowingFacts::now() {
  while (true) {
    auto inference = std::move(inference_);
    if (!inference) {
      inference = std::make_unique<Inference>(graph_, probe_, may_assume_, *turns_);
    }
    try {
      inference->advance();
    } catch (const ShapeError&) {
      sizes_at_fault_ = inference->sizes_at_fault();
      *turns_ = {};
      may_assume_ = !may_assume_;
      if (may_assume_) throw;
      continue;  // an assumption contradicts what is known
    }
    if (inference->must_repeat()) continue;
    inference_ = std::move(inference);
    return inference_->facts();
  }
}

const Facts& GrowingFacts::about(ValueId value) {
  return inference_ && inference_->facts().shapes.has(value) ? inference_->facts() : now();
}

Facts GrowingFacts::last() && {
  now();
  return std::move(inference_->facts());
}

void GrowingFacts::forget(NodeId node, ValueId value) {
  if (may_assume_ && turns_->empty()) {
    if (inference_) inference_->forget(node, value);
    return;
  }
  // Earlier findings may no longer hold.
  inference_.reset();
  *turns_ = {};
  may_assume_ = true;
}

Facts infer(const Graph& graph, const Probe& probe) { return GrowingFacts(graph, probe).last(); }

bool is_literal(DType type, int64_t count) {
  if (type == DType::kString || type == DType::kUnknown) return false;
  return count <= (is_index_type(type) ? kMostIntegers : kMostFloats);
}

ValueConstants reevaluate(const Graph& graph, const Facts& facts, const ValueShapes& shapes) {
  Facts after{shapes, facts.constants, facts.computed};
  for (const Node& node : graph.nodes) {
    if (node.outputs.empty()) continue;
    const bool computed = std::ranges::any_of(
        node.outputs, [&](ValueId v) { return v != kNone && facts.computed[v]; });
    if (!computed) continue;
    const auto results = evaluate(NodeView(graph, node, after));
    for (size_t i = 0; results && i < results->size() && i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNone) continue;
      after.constants[node.outputs[i]] = (*results)[i];
      after.shapes[node.outputs[i]] = (*results)[i].dims;
    }
  }
  return std::move(after.constants);
}

}  // namespace parsimony
