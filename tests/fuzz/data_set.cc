// Any bytes are a data set or an Error. The first byte says how the rest is laid out, the second at
// which part of it a second file begins.
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/data/dataset.h"
#include "tests/fuzz/support/memory.h"
#include "tests/fuzz/support/scratch.h"

using namespace parsimony;  // NOLINT(google-build-using-namespace)

namespace {

struct Files {
  fuzz::Scratch folder;

  Files() {
    for (const char* name : {"class/a", "class/b"}) {
      std::filesystem::create_directories(folder / name);
    }
  }
  void write(std::string_view name, std::string_view bytes) const { folder.write(name, bytes); }
};

/// The spec of a data set whose files have just been written. `packed`: as .gz.
std::string lay_out(const Files& files, int kind, bool packed, std::string_view first,
                    std::string_view second) {
  const std::string ending = packed ? ".gz" : "";
  const std::string here = files.folder / ".";
  switch (kind % 5) {
    case 0:
      for (int i = 1; i <= 5; ++i) {
        files.write("data_batch_" + std::to_string(i) + ".bin" + ending, first);
      }
      files.write("test_batch.bin" + ending, second);
      return "cifar10:" + here;
    case 1:
      files.write("train.bin" + ending, first);
      files.write("test.bin" + ending, second);
      return "cifar100:" + here;
    case 2:
      for (const char* part : {"train", "t10k"}) {
        files.write(std::string(part) + "-images-idx3-ubyte" + ending, first);
        files.write(std::string(part) + "-labels-idx1-ubyte" + ending, second);
      }
      return "mnist:" + here;
    case 3:
      files.write("x.npy" + ending, first);
      files.write("y.npy" + ending, second);
      return "npy:" + (files.folder / ("x.npy" + ending)) + "," +
             (files.folder / ("y.npy" + ending));
    default:
      files.write("class/a/1.png", first);
      files.write("class/b/1.jpg", second.empty() ? first : second);
      return "folder:" + (files.folder / "class");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 2), size - 2);
  const size_t second = bytes.size() * data[1] / 255;
  const Files files;
  const std::string spec =
      lay_out(files, data[0], (data[0] & 0x80) != 0, bytes.substr(0, second), bytes.substr(second));
  DatasetOptions options;
  options.threads = 1;
  options.normalise = (data[0] & 0x40) != 0;
  if ((data[0] & 0x20) != 0) options.size = 8;
  const fuzz::MemoryLimit limit(size);
  try {
    read_dataset(spec, options);
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
