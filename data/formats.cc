#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/data/dataset.h"
#include "parsimony/data/errors.h"
#include "parsimony/data/formats_impl.h"

namespace parsimony {
namespace {

constexpr auto kFormats = std::to_array<Format>({
    {.name = "audio", .form = "audio:DIR", .input = open_audio},
    {.name = "cifar10", .form = "cifar10:DIR", .labelled = read_cifar10},
    {.name = "cifar100", .form = "cifar100:DIR", .labelled = read_cifar100},
    {.name = "folder", .form = "folder:DIR", .labelled = read_folder},
    {.name = "images", .form = "images:DIR", .input = open_images},
    {.name = "mnist", .form = "mnist:DIR", .labelled = read_idx},
    {.name = "npy", .form = "npy:NAME=FILE,…", .arrays = &ArrayFiles::add_npy, .mark = "="},
    {.name = "npy", .form = "npy:X,Y[,XTEST,YTEST]", .labelled = read_npy},
    {.name = "npz", .form = "npz:FILE", .arrays = &ArrayFiles::add_npz},
    {.name = "random", .form = "random:COUNT", .drawn = true},
    {.name = "safetensors", .form = "safetensors:FILE", .arrays = &ArrayFiles::add_safetensors},
    {.name = "shapes", .form = "shapes[:TRAIN,TEST]", .labelled = draw_shapes, .bare = true},
    {.name = "text",
     .form = "text:FILE[,length=N][,labels]",
     .labelled = read_text,
     .input = open_text},
});

std::string without_slashes(std::string_view place) {
  while (place.size() > 1 && place.ends_with('/')) place.remove_suffix(1);
  return std::string(place);
}

/// Returns whether an item has the mark; the path of an existing file does not.
bool is_marked(std::string_view place, std::string_view mark) {
  const std::string first(place.substr(0, place.find(',')));
  return first.find(mark) != std::string::npos && (mark.empty() || !std::filesystem::exists(first));
}

/// Returns the format of a file without a prefix.
const Format* format_of_file(std::string_view file) {
  if (file.find('=') != std::string_view::npos) return nullptr;
  const auto format = std::ranges::find_if(kFormats, [&](const Format& one) {
    return one.arrays != nullptr && one.mark.empty() && file.ends_with("." + std::string(one.name));
  });
  return format == kFormats.end() ? nullptr : &*format;
}

}  // namespace

std::optional<DataSpec> find_data_spec(std::string_view spec) {
  const size_t colon = std::min(spec.find(':'), spec.size());
  const std::string_view place = spec.substr(std::min(colon + 1, spec.size()));
  for (const Format& format : kFormats) {
    if (format.name != spec.substr(0, colon)) continue;
    if (is_marked(place, format.mark)) {
      return DataSpec{&format, without_slashes(place)};
    }
  }
  const Format* const format = format_of_file(spec);
  return format == nullptr ? std::nullopt : std::optional(DataSpec{format, std::string(spec)});
}

DataSpec parse_data_spec(std::string_view spec, bool labelled) {
  std::optional<DataSpec> found = find_data_spec(spec);
  const std::vector<std::string> known = data_names(labelled);
  if (!found) {
    const std::string_view name = spec.substr(0, spec.find(':'));
    throw ConfigError("unknown data set ", in_quotes(name), "; known are ",
                      listed(known, known.size()), ".", did_you_mean(name, known));
  }
  const Format& format = *found->format;
  if (labelled && !format.has_labels()) {
    throw ConfigError("data ", in_quotes(spec), ": it has no labels for training; expected ",
                      data_forms(true));
  }
  if (found->place.empty() && !(format.bare && spec == format.name)) {
    throw errors::bad_spec(spec, format.form);
  }
  return *found;
}

std::vector<std::string> data_names(bool labelled) {
  std::vector<std::string> names;
  for (const Format& format : kFormats) {
    const bool again = !names.empty() && names.back() == format.name;
    if (!again && (format.has_labels() || !labelled)) names.emplace_back(format.name);
  }
  return names;
}

std::string array_forms() {
  std::vector<std::string_view> forms;
  for (const Format& format : kFormats) {
    if (format.arrays != nullptr) forms.push_back(format.form);
  }
  std::string text;
  for (const std::string_view form : forms) {
    text += (text.empty() ? "" : form == forms.back() ? " or " : ", ") + std::string(form);
  }
  return text;
}

std::string data_forms(bool labelled) {
  std::string forms;
  for (const Format& format : kFormats) {
    if (labelled && !format.has_labels()) continue;
    forms += (forms.empty() ? "" : ", ") + std::string(format.form);
  }
  return forms;
}

namespace {

/// The input does not take windows; `option` sets their length.
ConfigError no_window_input(std::string_view input, std::string_view dims,
                            std::string_view option) {
  return ConfigError("input ", in_quotes(input), " ", dims,
                     " (-1 is any size) does not take windows [samples, length], or their length "
                     "is dynamic: pass it with ",
                     option);
}

}  // namespace

ConfigError too_short(std::string_view file, int64_t found, int64_t expected) {
  return ConfigError(file, ": ", found, " elements, and one window has ", expected);
}

Shape window_of(const Value& input, std::optional<int64_t> length, std::string_view option) {
  const Shape declared = input.declared.value_or(Shape{-1, -1});
  if (declared.size() < 2) throw no_window_input(input.name, to_string(declared), option);
  Shape window(declared.begin() + 1, declared.end());
  if (window.back() < 1) window.back() = length.value_or(-1);
  for (size_t i = 0; i + 1 < window.size(); ++i) window[i] = std::max<int64_t>(1, window[i]);
  if (window.back() < 1 || element_count(window) != window.back()) {
    throw no_window_input(input.name, to_string(declared), option);
  }
  return window;
}

TensorBytes empty_rows(DType dtype, const Shape& window, int64_t count) {
  TensorBytes result;
  result.dtype = dtype;
  result.dims = window;
  result.dims.insert(result.dims.begin(), count);
  result.bytes.resize(static_cast<size_t>(element_count(result.dims) * size_of(dtype)));
  return result;
}

}  // namespace parsimony
