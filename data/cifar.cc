// CIFAR-10 and CIFAR-100 in their binary layout: records of one or two bytes of labels and 3072
// bytes of pixels, planar RGB, row by row.
// Source: Krizhevsky, https://www.cs.toronto.edu/~kriz/cifar.html
#include <filesystem>

#include "parsimony/data/data_file.h"
#include "parsimony/data/errors.h"
#include "parsimony/data/formats_impl.h"

namespace parsimony {
namespace {

constexpr int64_t kImageSide = 32;
constexpr int64_t kPixels = 3 * kImageSide * kImageSide;

struct Layout {
  int64_t label_bytes = 1;  ///< the last of them counts: coarse, fine
  int64_t classes = 10;

  int64_t record() const { return label_bytes + kPixels; }
};

/// Returns the folder itself, or the one that the published archive unpacks to.
std::string folder_of(const std::string& place, const std::string& unpacked) {
  std::error_code ignored;
  const std::string inner = place + "/" + unpacked;
  return std::filesystem::is_directory(inner, ignored) ? inner : place;
}

void append(Samples& samples, const std::string& path, const Layout& layout) {
  // Neither: the plain name, for the message.
  const DataFile file(plain_or_gzip(path).value_or(path));
  const int64_t record = layout.record();
  if (file.size() == 0) throw errors::no_samples(file.path());
  if (file.size() % record != 0) {
    const int64_t last = file.size() - file.size() % record;
    throw ModelError(file.path(), ": byte ", last, ": the record that begins here has ",
                     file.size() - last, " bytes, expected ", record);
  }
  samples.values.reserve(samples.values.size() + file.bytes().size());
  for (int64_t at = 0; at < file.size(); at += record) {
    const int64_t label_at = at + layout.label_bytes - 1;
    const int64_t label = file.byte(label_at);
    if (label >= layout.classes) {
      throw errors::bad_label(file.path(), label_at, label, layout.classes);
    }
    samples.labels.push_back(label);
    const auto pixels = file.part(label_at + 1, kPixels);
    samples.values.insert(samples.values.end(), pixels.begin(), pixels.end());
  }
}

bool enough(const Samples& samples, std::optional<int64_t> limit) {
  return limit && samples.count() >= *limit;
}

/// Returns the names in the file that comes with the data, if it exists.
std::vector<std::string> names(const std::string& path, std::vector<std::string> otherwise) {
  std::vector<std::string> lines = lines_of(path);
  return lines.size() == otherwise.size() ? std::move(lines) : std::move(otherwise);
}

}  // namespace

Dataset read_cifar10(const std::string& place, const DatasetOptions& options) {
  const std::string folder = folder_of(place, "cifar-10-batches-bin");
  const Layout layout{.label_bytes = 1, .classes = 10};
  Dataset data;
  data.name = "cifar10";
  data.classes = names(
      folder + "/batches.meta.txt",
      {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"});
  data.train.dims = data.test.dims = {3, kImageSide, kImageSide};
  for (int i = 1; i <= 5 && !enough(data.train, options.train_samples); ++i) {
    append(data.train, folder + "/data_batch_" + std::to_string(i) + ".bin", layout);
  }
  append(data.test, folder + "/test_batch.bin", layout);
  return data;
}

Dataset read_cifar100(const std::string& place, const DatasetOptions&) {
  const std::string folder = folder_of(place, "cifar-100-binary");
  const Layout layout{.label_bytes = 2, .classes = 100};
  Dataset data;
  data.name = "cifar100";
  data.classes = names(folder + "/fine_label_names.txt", numbers_from(0, layout.classes));
  data.train.dims = data.test.dims = {3, kImageSide, kImageSide};
  append(data.train, folder + "/train.bin", layout);
  append(data.test, folder + "/test.bin", layout);
  return data;
}

}  // namespace parsimony
