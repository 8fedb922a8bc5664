// A file of text: windows of bytes, each labelled with the byte that follows it.
#include <algorithm>
#include <optional>

#include "parsimony/base/npy.h"
#include "parsimony/base/parse.h"
#include "parsimony/data/data_file.h"
#include "parsimony/data/errors.h"
#include "parsimony/data/readers_impl.h"

namespace parsimony {
namespace {

constexpr int64_t kLength = 128;
constexpr int64_t kBytes = 256;

/// "FILE,length=256": the name may contain commas itself.
struct TextPlace {
  std::string path;
  int64_t length = kLength;

  explicit TextPlace(const std::string& place) : path(place) {
    constexpr std::string_view kOption = ",length=";
    const size_t at = place.rfind(kOption);
    if (at == std::string::npos) return;
    const auto given = number_of<int64_t>(std::string_view(place).substr(at + kOption.size()));
    if (given.value_or(0) < 1) {
      throw errors::bad_spec("text:" + place, "text:FILE,length=N, with N of at least 1");
    }
    length = *given;
    path.resize(at);
  }
};

/// The windows `begin` … `end` - 1 of `length` bytes, one behind the other.
Samples windows(const DataFile& file, int64_t length, int64_t begin, int64_t end) {
  Samples samples;
  samples.dims = {length};
  samples.label_dims = {length};
  const auto part = file.part(begin * length, (end - begin) * length);
  samples.values.assign(part.begin(), part.end());
  for (int64_t at = begin * length; at < end * length; ++at) {
    samples.labels.push_back(file.byte(at + 1));
  }
  return samples;
}

}  // namespace

Dataset read_text(const std::string& place, const DatasetOptions& options) {
  const TextPlace text(place);
  const DataFile file(text.path);
  const int64_t count = std::max<int64_t>(0, file.size() - 1) / text.length;
  if (count == 0) {
    throw errors::ends_early(text.path, file.size(), text.length + 1, "a window and its labels");
  }
  Dataset data;
  data.name = "text";
  data.tokens = true;
  data.classes = numbers_from(0, kBytes);
  const int64_t test = test_part_of(count, options, "text:" + place);
  data.train = windows(file, text.length, 0, count - test);
  data.test = windows(file, text.length, count - test, count);
  return data;
}

}  // namespace parsimony
