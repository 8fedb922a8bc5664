// Checks the output files of a command before it starts to work; writes the page of --html.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/api/prune.h"
#include "parsimony/engines/editable_model.h"
#include "parsimony/report/network/picture.h"

namespace parsimony::cli {

/// The name, in messages, of the file that a command works on.
inline constexpr const char* kModel = "the model";

/// A file and the option that names it.
struct NamedFile {
  std::string option;         ///< "--plan"
  std::string path;           ///< empty: not set
  std::string replaces = {};  ///< for an output: the input that it may replace with --in-place
};

/// Adds --in-place.
void add_in_place_option(CLI::App& command, bool& in_place);

/// Rejects outputs that would fail, or destroy something, after the work is done.
/// @throws IoError if a folder is missing or not writable
/// @throws ConfigError if two outputs are the same file, or an output is an input, also through
/// links
void check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs,
                   bool in_place = false);

/// Rejects outputs that collide with data files beside the model, or beside an output that may
/// replace it, which will be a model: these files are known after reading it.
void check_outputs_beside(const std::vector<NamedFile>& outputs, std::vector<NamedFile> inputs,
                          const EditableFile& model, bool in_place = false);

/// Checks a file extension; `format` is that of Graph or Checkpoint: "onnx", "safetensors". @throws
/// ConfigError if the extension belongs to another format
void check_ending(const std::string& path, std::string_view format);

// The page of `explain --html` and `prune --html`.

/// Returns the decision of a pruning. @param asked  the options that led to it, as typed @param
/// done  whether the network was pruned
PictureDecision decision_of(const Pruning& pruning, const std::string& asked, bool done);

/// Writes the page; `model` is the path of the model file.
void write_network_page(const std::string& path, const std::string& model, const Graph& graph,
                        const Analysis& analysis,
                        const std::optional<PictureDecision>& decision = std::nullopt);

}  // namespace parsimony::cli
