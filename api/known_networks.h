// Networks that a checkpoint alone is enough for: their graphs are known, and recognised by the
// names of the checkpoint's tensors.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "parsimony/engines/editable_model.h"

namespace parsimony {

/// A checkpoint as a model: the graph of its network with its weights, as ONNX.
struct KnownNetwork {
  std::string name;
  std::unique_ptr<EditableFile> model;
};

/// By name: those that come with the command, torchvision's for classification among them, and
/// those that the user has added.
std::vector<std::string> known_networks();

/// Returns the path of a network that the user added: NAME.onnx in "parsimony/networks" below
/// $XDG_DATA_HOME or ~/.local/share. @throws ConfigError for a name that is no file name
std::filesystem::path known_network_path(const std::string& name);

/// The network whose weights the checkpoint has, all of them under one prefix and none besides.
/// Shapes may be others as far as the graph allows: another number of classes, other widths; the
/// model's notes name them. Of several networks the one with most shapes in common is taken.
/// @throws UnsupportedError, saying what to do, if none fits; IoError; ModelError
KnownNetwork open_known_network(const std::string& checkpoint);

}  // namespace parsimony
