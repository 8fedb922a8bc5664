#include "parsimony/checkpoints/dependents.h"

#include <array>

#include "parsimony/base/ranges.h"

namespace parsimony {

std::string dotted_name(const StoredTensor& tensor) {
  constexpr auto kModuleParts =
      std::to_array<std::string_view>({"_modules", "_parameters", "_buffers"});
  std::string name;
  for (const std::string& key : tensor.path) {
    if (!contains(kModuleParts, key)) name += (name.empty() ? "" : ".") + key;
  }
  return name;
}

TensorNames::TensorNames(const Checkpoint& checkpoint) {
  for (const TensorId id : checkpoint.tensors().ids()) {
    ids_.try_emplace(dotted_name(checkpoint.tensors()[id]), id);
  }
}

TensorId TensorNames::find(const std::string& name) const {
  const auto found = ids_.find(name);
  return found == ids_.end() ? TensorId() : found->second;
}

namespace {

/// The end of a name, component by component: "{}" is the weight's own name within its module, with
/// what surrounds it in the component; "*" is any component.
struct Row {
  std::string_view pattern;
  DependentPart part;
  std::string_view what;
  std::string_view beside = {};  ///< a tensor of the same module that must exist
  bool is_lookup = false;
};

constexpr std::string_view kFactor = "low-rank factor";
constexpr std::string_view kScale = "quantisation parameter";

// A name that fits several rows belongs to the first of them.
constexpr auto kRows = std::to_array<Row>({
    {"parametrizations.{}.original", DependentPart::kWeight, "parametrized weight"},
    {"parametrizations.{}.original1", DependentPart::kWeight, "direction of weight norm",
     "parametrizations.{}.original0"},
    {"parametrizations.{}.original0", DependentPart::kMagnitude, "magnitude of weight norm",
     "parametrizations.{}.original1"},
    {"parametrizations.{}.*._u", DependentPart::kLeft, "vector of spectral norm"},
    {"parametrizations.{}.*._v", DependentPart::kRight, "vector of spectral norm"},
    {"{}_orig", DependentPart::kWeight, "parametrized weight"},
    {"{}_mask", DependentPart::kMask, "pruning mask", "{}_orig"},
    {"{}_u", DependentPart::kLeft, "vector of spectral norm", "{}_orig"},
    {"{}_v", DependentPart::kRight, "vector of spectral norm", "{}_orig"},
    {"{}_v", DependentPart::kWeight, "direction of weight norm", "{}_g"},
    {"{}_g", DependentPart::kMagnitude, "magnitude of weight norm", "{}_v"},
    {"base_layer.{}", DependentPart::kWeight, "weight of the base layer"},
    {"modules_to_save.*.{}", DependentPart::kWeight, "trained copy"},
    {"original_module.{}", DependentPart::kWeight, "original of a trained copy"},
    {"lora_A", DependentPart::kDown, kFactor},
    {"lora_A.weight", DependentPart::kDown, kFactor},
    {"lora_A.*", DependentPart::kDown, kFactor},
    {"lora_A.*.weight", DependentPart::kDown, kFactor},
    {"lora_B", DependentPart::kUp, kFactor},
    {"lora_B.weight", DependentPart::kUp, kFactor},
    {"lora_B.*", DependentPart::kUp, kFactor},
    {"lora_B.*.weight", DependentPart::kUp, kFactor},
    {"lora_embedding_A", DependentPart::kDown, kFactor, {}, true},
    {"lora_embedding_A.*", DependentPart::kDown, kFactor, {}, true},
    {"lora_embedding_B", DependentPart::kUp, kFactor, {}, true},
    {"lora_embedding_B.*", DependentPart::kUp, kFactor, {}, true},
    {"lora_magnitude_vector", DependentPart::kPerOutput, kMagnitudeOfFactors},
    {"lora_magnitude_vector.weight", DependentPart::kPerOutput, kMagnitudeOfFactors},
    {"lora_magnitude_vector.*", DependentPart::kPerOutput, kMagnitudeOfFactors},
    {"lora_magnitude_vector.*.weight", DependentPart::kPerOutput, kMagnitudeOfFactors},
    {"hada_w1_a.*", DependentPart::kUp, kFactor},
    {"hada_w1_b.*", DependentPart::kDown, kFactor},
    {"hada_w2_a.*", DependentPart::kUp, kFactor},
    {"hada_w2_b.*", DependentPart::kDown, kFactor},
    {"ia3_l.*", DependentPart::kPerOutput, "scale of IA3"},
    {"{}_fake_quant.*", DependentPart::kPerOutput, kScale},
    {"{}_fake_quant.*.*", DependentPart::kPerOutput, kScale},
    {"{}_quantizer.*", DependentPart::kPerOutput, kScale},
    {"{}_quantizer.*.*", DependentPart::kPerOutput, kScale},
    {"{}_scale", DependentPart::kPerOutput, kScale},
    {"{}_zero_point", DependentPart::kPerOutput, kScale},
    {"activation_post_process.*", DependentPart::kPerOutput, kScale},
    {"activation_post_process.*.*", DependentPart::kPerOutput, kScale},
    {"output_quantizer.*", DependentPart::kPerOutput, kScale},
    {"input_quantizer.*", DependentPart::kPerInput, kScale},
});

/// Cuts the last component off `name`. @pre it has one
std::string_view take_last(std::string_view& name) {
  const size_t dot = name.rfind('.');
  const std::string_view last = dot == name.npos ? name : name.substr(dot + 1);
  name = dot == name.npos ? std::string_view() : name.substr(0, dot);
  return last;
}

/// Returns the text that "{}" stands for; empty if it stands for nothing.
std::string_view captured(std::string_view pattern, std::string_view component) {
  const size_t at = pattern.find("{}");
  const std::string_view end = pattern.substr(at + 2);
  const bool fits = component.size() > at + end.size() &&
                    component.starts_with(pattern.substr(0, at)) && component.ends_with(end);
  return fits ? component.substr(at, component.size() - at - end.size()) : std::string_view();
}

/// A name taken apart by a pattern.
struct Parts {
  std::string module;                ///< with the dot behind it; empty at the root
  std::string parameter = "weight";  ///< what "{}" stands for
};

std::optional<Parts> taken_apart(std::string_view name, std::string_view pattern) {
  Parts parts;
  while (!pattern.empty()) {
    if (name.empty()) return std::nullopt;
    const std::string_view expected = take_last(pattern);
    const std::string_view component = take_last(name);
    if (expected.find("{}") != expected.npos) {
      parts.parameter = captured(expected, component);
      if (parts.parameter.empty()) return std::nullopt;
    } else if (expected != "*" && expected != component) {
      return std::nullopt;
    }
  }
  if (!name.empty()) parts.module = std::string(name) + ".";
  return parts;
}

std::string filled_in(std::string_view pattern, const Parts& parts) {
  const size_t at = pattern.find("{}");
  return parts.module + std::string(pattern.substr(0, at)) + parts.parameter +
         std::string(pattern.substr(at + 2));
}

}  // namespace

std::optional<Dependency> dependency_of(const std::string& name, const TensorNames& names) {
  for (const Row& row : kRows) {
    const std::optional<Parts> parts = taken_apart(name, row.pattern);
    if (!parts) continue;
    if (!row.beside.empty() && names.find(filled_in(row.beside, *parts)) == TensorId()) continue;
    return Dependency{
        parts->module + parts->parameter,
        {TensorId(), row.part, row.what, row.is_lookup, static_cast<int>(&row - kRows.data())}};
  }
  return std::nullopt;
}

Dependents::Dependents(const Checkpoint& checkpoint, const TensorNames& names)
    : weight_of_(checkpoint.tensors().size()) {
  for (const TensorId id : checkpoint.tensors().ids()) {
    std::string& name = weight_of_[id] = dotted_name(checkpoint.tensors()[id]);
    std::optional<Dependent> dependent;
    // An adapter's module holds a layer that may be parametrized itself.
    while (auto found = dependency_of(name, names)) {
      if (!dependent || dependent->part == DependentPart::kWeight) dependent = found->as;
      name = std::move(found->weight);
    }
    if (!dependent) continue;
    dependent->tensor = id;
    by_weight_[name].push_back(*dependent);
  }
}

const std::vector<Dependent>& Dependents::of(const std::string& weight) const {
  static const std::vector<Dependent> kNothing;
  const auto found = by_weight_.find(weight);
  return found == by_weight_.end() ? kNothing : found->second;
}

TensorId Dependents::standing_for(const std::string& weight) const {
  const Dependent* first = nullptr;
  for (const Dependent& dependent : of(weight)) {
    if (dependent.part != DependentPart::kWeight) continue;
    if (first == nullptr || dependent.order < first->order) first = &dependent;
  }
  return first == nullptr ? TensorId() : first->tensor;
}

}  // namespace parsimony
