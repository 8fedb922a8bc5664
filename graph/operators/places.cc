// Places that a node chooses along an axis of its operand, as TopK does. Where they only select
// among the elements of axes that are as long, these are one axis: experts and their scores.
#include <algorithm>
#include <vector>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/operators/builder.h"
#include "parsimony/graph/operators/families.h"

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
      if (schema.has(kReadsSizes)) continue;
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

}  // namespace parsimony::operators
