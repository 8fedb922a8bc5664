#include "parsimony/cli/outputs.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/report/html/page.h"

namespace parsimony::cli {
namespace {

ConfigError same_file(std::string_view path, std::string_view one, std::string_view other) {
  return ConfigError(one, " and ", other, " are the same file: ", path);
}

/// The extension of the path belongs to another format than the result; `ending` would be right.
ConfigError wrong_ending(std::string_view path, std::string_view format, std::string_view ending) {
  const std::string name = std::filesystem::path(path).stem().string() + std::string(ending);
  return ConfigError(path, ": the output has the format ", format,
                     ", but the file extension implies another; use for example ", name);
}

namespace fs = std::filesystem;

bool is_same(const NamedFile& a, const NamedFile& b) {
  if (a.path.empty() || b.path.empty()) return false;
  std::error_code error;
  if (fs::equivalent(a.path, b.path, error) && !error) return true;
  // weakly_canonical does not make a relative path absolute if no part of it exists.
  const fs::path first = fs::weakly_canonical(fs::absolute(a.path), error);
  const fs::path second = fs::weakly_canonical(fs::absolute(b.path), error);
  return !error && first == second;
}

void check_writable(const std::string& path) { const NewFile probe(path); }

/// The formats of files with an extension. Other extensions are not checked.
struct Ending {
  std::string_view ending;
  std::vector<std::string_view> formats;
};

const std::vector<Ending>& endings() {
  static const std::vector<Ending> all = {
      {".onnx", {"onnx"}},
      {".pt2", {"torch.export"}},
      {".safetensors", {"safetensors"}},
      {".pt", {"torchscript", "PyTorch zip archive", "PyTorch stream"}},
      {".pth", {"torchscript", "PyTorch zip archive", "PyTorch stream"}},
      {".ckpt", {"PyTorch zip archive", "PyTorch stream"}}};
  return all;
}

bool is_of(const Ending& ending, std::string_view format) {
  return std::ranges::find(ending.formats, format) != ending.formats.end();
}

}  // namespace

void add_in_place_option(CLI::App& command, bool& in_place) {
  command.add_flag("--in-place", in_place,
                   "Allow an output to overwrite the input that it is made from");
}

void check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs,
                   bool in_place) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const NamedFile& output = outputs[i];
    if (output.path.empty()) continue;
    for (size_t j = 0; j < i; ++j) {
      if (is_same(output, outputs[j])) {
        throw same_file(output.path, outputs[j].option, output.option);
      }
    }
    for (const NamedFile& input : inputs) {
      if (!is_same(output, input)) continue;
      if (output.replaces != input.option) {
        throw same_file(output.path, input.option, output.option);
      }
      if (!in_place) {
        throw ConfigError(output.option, " is ", input.option, ": ", output.path,
                          "; pass --in-place to overwrite it");
      }
    }
    check_writable(output.path);
  }
}

void check_outputs_beside(const std::vector<NamedFile>& outputs, std::vector<NamedFile> inputs,
                          const EditableFile& model, bool in_place) {
  std::vector<NamedFile> beside;
  for (const std::string& path : model.data_files()) {
    beside.push_back({"the model's external data", path});
  }
  if (beside.empty()) return;
  std::vector<NamedFile> written;
  for (const NamedFile& output : outputs) {
    written.push_back(output);
    if (output.replaces != kModel) continue;
    const NamedFile data{"the output's external data", output.path + ".data"};
    const auto is_data = [&](const NamedFile& file) { return is_same(file, data); };
    // If it is the model's own, the writer chooses another name.
    if (std::ranges::none_of(beside, is_data)) written.push_back(data);
  }
  inputs.insert(inputs.end(), beside.begin(), beside.end());
  check_outputs(written, inputs, in_place);
}

void check_ending(const std::string& path, std::string_view format) {
  const auto found = std::ranges::find(
      endings(), std::string_view(fs::path(path).extension().native()), &Ending::ending);
  if (found == endings().end() || is_of(*found, format)) return;
  for (const Ending& right : endings()) {
    if (is_of(right, format)) throw wrong_ending(path, format, right.ending);
  }
}

PictureDecision decision_of(const Pruning& pruning, const std::string& asked, bool done) {
  return {pruning.allocation.masks, pruning.allocation.scores, asked, done};
}

void write_network_page(const std::string& path, const std::string& model, const Graph& graph,
                        const Analysis& analysis, const std::optional<PictureDecision>& decision) {
  NetworkPicture picture =
      picture_of(graph, analysis.sample, analysis.coupling, analysis.probe, decision);
  picture.model = std::filesystem::path(model).filename().string();
  write_file(path, to_html(picture));
}

}  // namespace parsimony::cli
