// The idx layout: a magic number, big-endian sizes, then bytes.
// Source: LeCun, Cortes, Burges, http://yann.lecun.com/exdb/mnist; Cohen et al., EMNIST, 2017,
// whose images are stored with rows and columns swapped.
#include <algorithm>
#include <array>
#include <filesystem>
#include <regex>

#include "parsimony/base/npy.h"
#include "parsimony/data/data_file.h"
#include "parsimony/data/errors.h"
#include "parsimony/data/formats_impl.h"

namespace parsimony {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kImageMagic = 0x00000803;  // unsigned bytes, three dimensions
constexpr uint32_t kLabelMagic = 0x00000801;
constexpr uint32_t kMaxSide = 1 << 14;

struct Variant {
  std::string_view prefix;  ///< of the file names
  int64_t classes = 10;
  int64_t first_label = 0;
  bool transposed = false;
};

constexpr std::array<Variant, 6> kVariants = {{
    {"emnist-balanced", 47, 0, true},
    {"emnist-bymerge", 47, 0, true},
    {"emnist-byclass", 62, 0, true},
    {"emnist-letters", 26, 1, true},
    {"emnist-digits", 10, 0, true},
    {"emnist-mnist", 10, 0, true},
}};

Variant variant_of(const fs::path& path) {
  const std::string file = path.filename().string();
  for (const Variant& variant : kVariants) {
    if (file.starts_with(variant.prefix)) return variant;
  }
  return {};
}

/// The folder of the files, and the prefix of their names.
struct IdxFiles {
  std::string folder;
  std::string prefix;
};

IdxFiles files_of(const std::string& place) {
  std::error_code ignored;
  if (fs::is_directory(place, ignored)) return {place, ""};
  const fs::path path(place);
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (fs::is_directory(parent, ignored)) return {parent.string(), path.filename().string()};
  return {place, ""};
}

/// Returns the only file PREFIX…PART-KIND-LAYOUT of the folder, preferably without .gz.
std::string find_file(const IdxFiles& place, const std::string& part, const std::string& kind,
                      const std::string& layout) {
  std::error_code failed;
  const std::regex expected("(.*-)?" + (part == "t10k" ? "(t10k|test)" : part) + "-" + kind +
                            "[-.]" + layout + "(\\.gz)?");
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(place.folder, failed)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(place.prefix) && std::regex_match(name, expected)) found.push_back(name);
  }
  if (failed) throw errors::cannot_list(place.folder, failed.message());
  std::sort(found.begin(), found.end());
  std::erase_if(found, [&](const std::string& name) {
    return name.ends_with(".gz") &&
           std::binary_search(found.begin(), found.end(), name.substr(0, name.size() - 3));
  });
  if (found.size() > 1) {
    throw ConfigError(
        place.folder, ": found ", listed(found, found.size()),
        "; expected one data set. Append the prefix of its file names to the folder: ",
        place.folder, "/emnist-letters");
  }
  if (found.empty()) {
    const std::string begin = place.prefix.empty() ? "" : place.prefix + "…";
    throw IoError(place.folder, ": found no ", begin, part, "-", kind, "-", layout, "[.gz]");
  }
  return place.folder + "/" + found.front();
}

uint32_t big_endian(const DataFile& file, int64_t offset) {
  uint32_t value = 0;
  for (int64_t i = 0; i < 4; ++i) value = value << 8 | file.byte(offset + i);
  return value;
}

ModelError bad_bytes(const DataFile& file, int64_t offset, std::string_view found,
                     std::string_view expected) {
  return ModelError(file.path(), ": byte ", offset, ": found ", found, ", expected ", expected);
}

/// Checks the file against its header. @returns the sizes
std::vector<int64_t> sizes_of(const DataFile& file, uint32_t magic, std::string_view what) {
  const int64_t dimensions = magic & 0xFF;
  const int64_t header = 4 + 4 * dimensions;
  if (file.size() < header) throw errors::ends_early(file.path(), file.size(), header, "the sizes");
  if (const uint32_t found = big_endian(file, 0); found != magic) {
    throw bad_bytes(file, 0, std::to_string(found), std::to_string(magic));
  }
  std::vector<int64_t> sizes;
  int64_t expected = 1;
  for (int64_t i = 0; i < dimensions; ++i) {
    const int64_t offset = 4 + 4 * i;
    const uint32_t size = big_endian(file, offset);
    if (size == 0) throw errors::no_samples(file.path());
    if (i > 0 && size > kMaxSide) {
      throw bad_bytes(file, offset, "size " + std::to_string(size),
                      "at most " + std::to_string(kMaxSide));
    }
    sizes.push_back(size);
    expected *= size;
  }
  expected += header;
  if (file.size() < expected) throw errors::ends_early(file.path(), file.size(), expected, what);
  if (file.size() > expected) throw errors::too_long(file.path(), file.size(), expected);
  return sizes;
}

void transpose_each(Samples& samples) {
  const size_t height = samples.dims[1];
  const size_t width = samples.dims[2];
  std::vector<std::byte> image(height * width);
  for (size_t at = 0; at < samples.values.size(); at += image.size()) {
    for (size_t y = 0; y < height; ++y) {
      for (size_t x = 0; x < width; ++x) {
        image[x * height + y] = samples.values[at + y * width + x];
      }
    }
    std::copy(image.begin(), image.end(), samples.values.begin() + static_cast<ptrdiff_t>(at));
  }
  std::swap(samples.dims[1], samples.dims[2]);
}

Samples read_part(const IdxFiles& place, const std::string& part) {
  const DataFile images(find_file(place, part, "images", "idx3-ubyte"));
  const DataFile labels(find_file(place, part, "labels", "idx1-ubyte"));
  const Variant variant = variant_of(images.path());
  const std::vector<int64_t> sizes = sizes_of(images, kImageMagic, "its images");
  const int64_t count = sizes_of(labels, kLabelMagic, "its labels")[0];
  if (sizes[0] != count) throw errors::counts_differ(images.path(), sizes[0], labels.path(), count);

  Samples samples;
  samples.dims = {1, sizes[1], sizes[2]};
  const auto pixels = images.part(16, images.size() - 16);
  samples.values.assign(pixels.begin(), pixels.end());
  if (variant.transposed) transpose_each(samples);
  for (int64_t at = 8; at < labels.size(); ++at) {
    const int64_t label = labels.byte(at) - variant.first_label;
    if (label < 0 || label >= variant.classes) {
      throw errors::bad_label(labels.path(), at, label, variant.classes);
    }
    samples.labels.push_back(label);
  }
  return samples;
}

}  // namespace

Dataset read_idx(const std::string& place, const DatasetOptions&) {
  const IdxFiles files = files_of(place);
  Dataset data;
  data.name = "mnist";
  data.train = read_part(files, "train");
  data.test = read_part(files, "t10k");
  const Variant variant = variant_of(find_file(files, "train", "images", "idx3-ubyte"));
  data.classes = numbers_from(variant.first_label, variant.classes);
  return data;
}

}  // namespace parsimony
