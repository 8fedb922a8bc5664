// Folders of images, one folder per class.
#include <algorithm>
#include <filesystem>

#include "parsimony/base/files.h"
#include "parsimony/base/parallel.h"
#include "parsimony/base/random.h"
#include "parsimony/data/data_file.h"
#include "parsimony/data/formats_impl.h"
#include "parsimony/data/image.h"

namespace parsimony {
namespace {

namespace fs = std::filesystem;

struct Item {
  std::string path;
  int64_t label = 0;
};

/// Returns the images below the class folders. `classes` is filled if it is empty, otherwise it
/// must match.
std::vector<Item> items_in(const std::string& folder, std::vector<std::string>& classes) {
  const std::vector<std::string> found = names_in(folder, true);
  if (found.empty()) {
    throw ModelError(folder, ": found no folders; expected one per class");
  }
  if (classes.empty()) classes = found;
  std::vector<Item> items;
  for (const std::string& name : found) {
    const auto known = std::lower_bound(classes.begin(), classes.end(), name);
    if (known == classes.end() || *known != name) {
      throw ModelError(folder, ": class ", in_quotes(name), " is not in the training set.",
                       did_you_mean(name, classes));
    }
    const std::string class_folder = folder + "/" + name;
    const size_t before = items.size();
    for (const std::string& file : names_in(class_folder, false)) {
      if (ends_like(file, kImageEndings))
        items.push_back({class_folder + "/" + file, known - classes.begin()});
    }
    if (items.size() == before) {
      throw ModelError(class_folder, ": found no .jpg, .jpeg or .png");
    }
  }
  return items;
}

/// Returns the items in random order, so that the first few have all classes.
std::vector<Item> shuffled(const std::vector<Item>& items, Random random) {
  std::vector<Item> mixed;
  for (const int64_t i : permutation(static_cast<int64_t>(items.size()), random)) {
    mixed.push_back(items[i]);
  }
  return mixed;
}

void keep_first(std::vector<Item>& items, std::optional<int64_t> limit) {
  if (limit && *limit < static_cast<int64_t>(items.size())) {
    items.resize(*limit);
  }
}

Image read_image(const Item& item) { return decode_image(item.path, read_file(item.path)); }

/// Decodes images; `first` determines the shape unless the options do.
Samples decode(const std::vector<Item>& items, const Item& first, const DatasetOptions& options) {
  Samples samples;
  if (options.size) {
    samples.dims = {3, *options.size, *options.size};
  } else {
    const Image image = read_image(first);
    samples.dims = {3, image.height, image.width};
  }
  const size_t stride = samples.stride();
  samples.values.resize(items.size() * stride);
  for (const Item& item : items) samples.labels.push_back(item.label);
  parallel_for(samples.count(), options.threads, [&](int64_t i) {
    const size_t index = i;
    const Image image = read_image(items[index]);
    std::byte* out = samples.values.data() + index * stride;
    if (options.size) {
      const Image scaled = resized(image, with_shorter_side(image, *options.size));
      return to_planar(cropped(scaled, {*options.size, *options.size}), out);
    }
    const Shape found = {3, image.height, image.width};
    if (found != samples.dims) {
      throw ModelError(items[index].path, ": the image is ", to_string(found), ", but ", first.path,
                       " is ", to_string(samples.dims), "; pass a size to resize them");
    }
    to_planar(image, out);
  });
  return samples;
}

std::optional<std::string> test_folder(const std::string& folder) {
  std::error_code ignored;
  for (const char* name : {"test", "val"}) {
    std::string path = folder + "/" + name;
    if (fs::is_directory(path, ignored)) return path;
  }
  return {};
}

}  // namespace

Dataset read_folder(const std::string& place, const DatasetOptions& options) {
  Dataset data;
  data.name = "folder";
  std::error_code ignored;
  const bool has_train = fs::is_directory(place + "/train", ignored);
  const std::string train_folder = has_train ? place + "/train" : place;
  std::vector<Item> train = shuffled(items_in(train_folder, data.classes), Random(options.seed, 0));
  std::vector<Item> test;
  if (const auto folder = test_folder(place); has_train && folder) {
    test = shuffled(items_in(*folder, data.classes), Random(options.seed, 1));
  } else {
    const auto all = static_cast<int64_t>(train.size());
    const int64_t part = test_part_of(all, options, "folder:" + place);
    test.assign(train.begin(), train.begin() + part);
    train.erase(train.begin(), train.begin() + part);
  }
  keep_first(train, options.train_samples);
  keep_first(test, options.test_samples);
  const Item first = train.front();
  data.train = decode(train, first, options);
  data.test = decode(test, first, options);
  return data;
}

}  // namespace parsimony
