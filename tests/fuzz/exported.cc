// Any text as the program of a .pt2 file, and any bytes as the file itself, are a program or an
// Error.
#include <cstdint>
#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/checkpoints/zip.h"
#include "parsimony/programs/exported/program.h"
#include "tests/fuzz/support/memory.h"
#include "tests/fuzz/support/scratch.h"

using namespace parsimony;  // NOLINT(google-build-using-namespace)

namespace {

/// The fixture with another program.
void write_with(std::string_view program, const std::string& path) {
  static const std::string fixture = "tests/exported/nested.2.14.pt2";
  static const MappedFile file(fixture);
  static const ZipReader zip(file.bytes(), fixture);
  NewFile copy(path);
  ZipWriter writer(copy);
  for (const ZipEntry& entry : zip.entries()) {
    writer.add(entry.name, entry.name.ends_with("/model.json") ? program : zip.content(entry));
  }
  writer.finish();
  copy.commit();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Scratch folder;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.starts_with("PK")) {
    folder.write("in", bytes);
  } else {
    write_with(bytes, folder / "in");
  }
  const fuzz::MemoryLimit limit(64 * size + (size_t{16} << 20));
  try {
    const programs::Archive archive(folder / "in");
    programs::read_program(archive, {});
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
