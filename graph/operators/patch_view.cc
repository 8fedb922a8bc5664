#include "parsimony/graph/operators/patch_view.h"

#include <algorithm>

#include "parsimony/graph/operators/match.h"

namespace parsimony {
namespace {

int64_t distinct_coordinates(const std::vector<int64_t>& kept, int64_t stride, int64_t size) {
  std::vector<bool> seen(static_cast<size_t>(size), false);
  for (const int64_t index : kept) seen[(index / stride) % size] = true;
  return std::ranges::count(seen, true);
}

}  // namespace

void PatchView::set_attribute(std::string_view name, const std::vector<int64_t>& from,
                              const std::vector<int64_t>& to) {
  if (from == to) return;
  const auto id = before.graph().nodes.id_of(before.node());
  patches_.push_back({id, -1, std::string(name), HostTensor::vector(from), HostTensor::vector(to)});
}

void PatchView::set_number(std::string_view name, double from, double to) {
  const auto id = before.graph().nodes.id_of(before.node());
  patches_.push_back({id, -1, std::string(name), HostTensor::of(from, DType::kFloat32),
                      HostTensor::of(to, DType::kFloat32)});
}

void PatchView::set_input(int input, std::string_view name, const HostTensor& to) {
  const auto id = before.graph().nodes.id_of(before.node());
  const HostTensor* from = before.constant(input);
  set_input_of(id, input, name, from == nullptr ? HostTensor::vector({}) : *from, to);
}

void PatchView::set_input_of(NodeId node, int input, std::string_view name, const HostTensor& from,
                             const HostTensor& to) {
  // An input shared by several readers may be patched more than once.
  for (const Patch& patch : patches_) {
    if (patch.node == node && patch.input == input && patch.to == to) return;
  }
  patches_.push_back({node, input, std::string(name), from, to});
}

void PatchView::set_attr_or_input(std::string_view name, int input,
                                  const std::vector<int64_t>& to) {
  if (before.find(name) != nullptr) {
    set_attribute(name, before.attrs(name), to);
    return;
  }
  const HostTensor* now = after.constant(input);
  if (now != nullptr && now->ints == to) return;
  HostTensor wanted = HostTensor::vector(to);
  if (now != nullptr) wanted.dtype = now->dtype;
  set_input(input, name, wanted);
}

void patch_bindings(PatchView& view) {
  const notation::Line* line = compiled(schema_of(view.before.node()));
  if (line == nullptr || view.before.has_unknown_shape()) return;
  const auto found = match(*line, view.before);
  if (!found) return;
  for (const notation::Binding& binding : found->alternative->bindings) {
    if (binding.counts_dims || view.before.find(binding.attribute) == nullptr) continue;
    for (size_t l = 0; l < found->labels.size(); ++l) {
      if (found->labels[l].name != binding.label) continue;
      const auto place = locate(*found, static_cast<int>(l));
      const auto* kept = place ? view.kept(place->value, place->dim) : nullptr;
      if (kept == nullptr || place->size == 1) continue;
      view.set_attribute(binding.attribute, {place->size},
                         {distinct_coordinates(*kept, place->stride, place->size)});
    }
  }
}

}  // namespace parsimony
