#include <algorithm>

#include "parsimony/base/errors.h"
#include "parsimony/checkpoints/zip.h"
#include "parsimony/torch_io/script/archive_impl.h"

namespace parsimony::torch_io::script {
namespace {

bool ends_in(const std::vector<std::string>& entries, std::string_view suffix) {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const std::string& name) { return name.ends_with(suffix); });
}

}  // namespace

std::vector<std::string> entries_of(std::string_view zip) {
  std::vector<std::string> names;
  try {
    const ZipReader reader(zip, {});
    for (const ZipEntry& entry : reader.entries()) names.push_back(entry.name);
  } catch (const ModelError&) {
    return {};
  }
  return names;
}

std::string not_torchscript_because(std::string_view bytes) {
  if (bytes.empty()) return "it is empty";
  if (bytes.starts_with("\x80")) {
    return "it is a pickle, as torch.save wrote before version 1.6; export with torch.jit.save";
  }
  if (!bytes.starts_with("PK")) return "it is not a zip archive";
  const std::vector<std::string> entries = entries_of(bytes);
  if (entries.empty()) return "the archive is truncated";
  if (ends_in(entries, "/constants.pkl")) return "";
  if (ends_in(entries, "/data.pkl")) {
    return "it contains tensors without a program (torch.save of a state dict or a model); "
           "export " +
           std::string("with torch.jit.trace or torch.jit.script and torch.jit.save");
  }
  return "the zip archive contains no program";
}

std::vector<std::string> extra_files(std::string_view zip) {
  constexpr std::string_view kFolder = "/extra/";
  std::vector<std::string> names;
  for (const std::string& entry : entries_of(zip)) {
    const size_t slash = entry.find('/');
    if (slash == std::string::npos || entry.compare(slash, kFolder.size(), kFolder) != 0) continue;
    names.push_back(entry.substr(slash + kFolder.size()));
  }
  return names;
}

}  // namespace parsimony::torch_io::script
