// Places that a node chooses along an axis of its operand, as TopK does. Where they only select
// among the elements of axes that are as long, these are one axis: experts and their scores.
#include <algorithm>
#include <utility>
#include <vector>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/operators/builder.h"
#include "parsimony/graph/operators/families.h"
#include "parsimony/graph/operators/match.h"

namespace parsimony::operators {
namespace {

/// Are the results elements of the operand, at other places?
bool passes_elements(const NodeView& view, int input) {
  const OpSchema& schema = schema_of(view.node());
  if (input != 0 || schema.has(kPads)) return false;
  if (schema.has(kCopies)) return true;
  if (!schema.has(kHomogeneous) || !schema.line.empty() || schema.places >= 0) return false;
  if (!schema.has(kRearranges)) return true;
  const Shape* x = view.in_shape(0);
  const Shape* y = view.out_shape(0);
  return x != nullptr && y != nullptr && element_count(*x) == element_count(*y);
}

/// The length of the axis along which the node reads its places; 0 if it is not known.
int64_t length_of_places(const NodeView& view) {
  const OpSchema& schema = schema_of(view.node());
  const Shape* along = schema.places == 0 ? view.out_shape(0) : view.in_shape(0);
  if (along == nullptr) return 0;
  const int64_t usual = schema.places == 0 ? -1 : 0;
  return (*along)[normal_axis(view, view.attr("axis", usual), along->size())];
}

/// Places are compared with constants: with one of them, or with each, as an identity's rows are.
struct Comparison {
  int constant = -1;  ///< operand
  int dim = 0;        ///< of the result, along which the constant names each place
  int64_t place = kNone;
};

std::optional<Comparison> comparison_of(const NodeView& view, int64_t length) {
  if (!schema_of(view.node()).has(kMatches)) return std::nullopt;
  for (const int i : {0, 1}) {
    const HostTensor* constant = view.constant(i);
    if (constant == nullptr || constant->floating() || view.computed(view.input(i))) continue;
    if (constant->ints.size() == 1) {
      const int64_t place = constant->ints.front();
      if (place >= 0 && place < length) return Comparison{i, 0, place};
    }
    const Shape* x = view.in_shape(1 - i);
    const auto lies = std::ranges::find(constant->dims, length);
    if (x == nullptr || constant->ints != successive(0, length) || lies == constant->dims.end()) {
      continue;
    }
    const auto from_right = constant->dims.end() - lies;
    const Shape& y = *view.out_shape(0);
    const bool spreads = from_right > std::ssize(*x) || *(x->end() - from_right) == 1;
    if (spreads) return Comparison{i, static_cast<int>(std::ssize(y) - from_right)};
  }
  return std::nullopt;
}

}  // namespace

bool only_selects(const NodeView& view, int64_t length) {
  const ValueId places = view.output(schema_of(view.node()).chosen);
  if (places == kNone) return true;
  std::vector<ValueId> found = {places};
  for (size_t i = 0; i < found.size(); ++i) {
    const Value& value = view.graph().value(found[i]);
    if (value.is_output || value.captured) return false;
    for (const Use& use : value.uses) {
      const NodeView reader = view.beside(use.node);
      const OpSchema& schema = schema_of(reader.node());
      if (schema.has(kReadsSizes) || comparison_of(reader, length)) continue;
      if (passes_elements(reader, use.input)) {
        for (const ValueId v : reader.node().outputs) {
          if (v != kNone && !contains(found, v)) found.push_back(v);
        }
      } else if (schema.places != use.input || length_of_places(reader) != length) {
        return false;
      }
    }
  }
  return true;
}

std::optional<ChosenAxis> chosen_axis(const NodeView& view, ValueId places) {
  while (places != kNone) {
    const Value& value = view.graph().value(places);
    if (value.producer == kNone) return std::nullopt;
    const NodeView producer = view.beside(value.producer);
    const OpSchema& schema = schema_of(producer.node());
    if (schema.chosen >= 0 && producer.output(schema.chosen) == places) {
      const Shape* x = producer.in_shape(0);
      if (x == nullptr) return std::nullopt;
      const int64_t usual = schema.chosen == 0 ? 0 : -1;
      return ChosenAxis{producer.input(0),
                        normal_axis(producer, producer.attr("axis", usual), x->size())};
    }
    if (!passes_elements(producer, 0)) return std::nullopt;
    places = producer.input(0);
  }
  return std::nullopt;
}

bool tie_to_chosen(FactorBuilder& builder, const NodeView& view, ValueId along, int dim) {
  const auto chosen = chosen_axis(view, view.input(schema_of(view.node()).places));
  if (!chosen) return false;
  const Shape* scores = view.shape(chosen->scores);
  const Shape* shape = view.shape(along);
  if (scores == nullptr || shape == nullptr || (*scores)[chosen->axis] != (*shape)[dim])
    return false;
  builder.tie(chosen->scores, chosen->axis, along, dim);
  return true;
}

namespace {

/// The axis along which the places that the node compares were chosen.
std::optional<std::pair<ChosenAxis, Comparison>> compared_axis(const NodeView& view) {
  for (const int places : {0, 1}) {
    const auto chosen = chosen_axis(view, view.input(places));
    if (!chosen) continue;
    const int64_t length = (*view.shape(chosen->scores))[chosen->axis];
    const auto found = comparison_of(view, length);
    if (found && found->constant == 1 - places) return std::pair(*chosen, *found);
  }
  return std::nullopt;
}

}  // namespace

Factors factor_matches(const NodeView& view) {
  FactorBuilder builder(view);
  Factors& factors = builder.factors();
  factors = factor_line(*compiled(schema_of(view.node())), view);
  const auto compared = compared_axis(view);
  if (!compared) return builder.take();
  const auto& [chosen, found] = *compared;
  if (found.place != kNone) {
    factors.pins.push_back({chosen.scores, chosen.axis, found.place, found.place + 1,
                            "places are compared with this one", found.place});
    return builder.take();
  }
  // The list is rewritten rather than sliced.
  const ValueId list = view.input(found.constant);
  std::erase_if(factors.terms, [&](const Term& term) { return term.value == list; });
  const Shape& dims = *view.shape(list);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] > 1) builder.pin(list, static_cast<int>(d), "a list of places");
  }
  builder.tie(chosen.scores, chosen.axis, view.output(0), found.dim);
  return builder.take();
}

void patch_matches(PatchView& view) {
  const auto compared = compared_axis(view.before);
  if (!compared) return;
  const auto& [chosen, found] = *compared;
  const auto* kept = view.kept(chosen.scores, chosen.axis);
  if (kept == nullptr) return;
  HostTensor places = *view.before.constant(found.constant);
  if (found.place == kNone) {
    std::ranges::replace(places.dims, std::ssize(places.ints), std::ssize(*kept));
    places.ints = successive(0, std::ssize(*kept));
    return view.set_input(found.constant, "places", places);
  }
  const int64_t now = std::ranges::lower_bound(*kept, found.place) - kept->begin();
  if (now == found.place) return;
  places.ints.front() = now;
  view.set_input(found.constant, "place", places);
}

}  // namespace parsimony::operators
