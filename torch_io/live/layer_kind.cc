#include <algorithm>
#include <iterator>

#include "parsimony/torch_io/live/errors.h"
#include "parsimony/torch_io/live/layer_kind_impl.h"

namespace parsimony::torch_io::live {
namespace {

std::vector<LayerKind> all_kinds() {
  std::vector<LayerKind> all;
  for (const auto& family :
       {conv_kinds(), linear_kinds(), norm_kinds(), recurrent_kinds(), attention_kinds()}) {
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

}  // namespace

std::string LayerEdit::name_of(std::string_view tensor) const {
  return (path.empty() ? "" : path + ".") + std::string(tensor);
}

std::optional<int64_t> LayerEdit::integer(std::string_view attribute) const {
  const auto known = wanted.find(attribute);
  if (known == wanted.end()) return std::nullopt;
  if (known->second.size() != 1 || known->second.front() < 1) {
    throw errors::bad_attribute(path, attribute, "wanted one number above 0");
  }
  return known->second.front();
}

void LayerEdit::agrees(std::string_view attribute, int64_t found) const {
  const std::optional<int64_t> given = integer(attribute);
  if (!given || *given == found) return;
  throw errors::attribute_differs(path, attribute, std::to_string(*given), std::to_string(found));
}

void LayerEdit::require(std::string_view tensor, const at::Tensor& value,
                        const std::vector<int64_t>& shape) const {
  if (!value.defined() || value.sizes() == at::IntArrayRef(shape)) return;
  throw errors::wrong_shape(name_of(tensor), shape, value.sizes().vec());
}

const LayerKind* kind_of(const torch::nn::Module& layer) {
  static const std::vector<LayerKind> kinds = all_kinds();
  const auto found = std::find_if(kinds.begin(), kinds.end(),
                                  [&](const LayerKind& kind) { return kind.matches(layer); });
  return found == kinds.end() ? nullptr : &*found;
}

std::vector<int64_t> count_in_parts(const AxisKeep& axis, int64_t parts) {
  std::vector<int64_t> counts(parts);
  const int64_t size = axis.size / parts;
  for (const int64_t index : axis.keep) ++counts[index / size];
  return counts;
}

int64_t groups_left(const std::string& tensor, const AxisKeep& axis, int64_t groups) {
  const std::vector<int64_t> counts = count_in_parts(axis, groups);
  std::vector<int64_t> left;
  std::copy_if(counts.begin(), counts.end(), std::back_inserter(left),
               [](int64_t count) { return count > 0; });
  const bool even =
      std::all_of(left.begin(), left.end(), [&](int64_t count) { return count == left.front(); });
  if (!even) throw errors::uneven_parts(tensor, "groups", counts);
  return static_cast<int64_t>(left.size());
}

}  // namespace parsimony::torch_io::live
