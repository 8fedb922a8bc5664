// Networks with stored graphs, whose checkpoints can be pruned without a model file: they are
// identified by the names of the checkpoint's tensors.
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

/// Returns the names of the networks that come with the command (including torchvision's for
/// classification) and of those that the user has added.
std::vector<std::string> known_networks();

/// Returns the path of a network that the user added: NAME.onnx in "parsimony/networks" below
/// $XDG_DATA_HOME or ~/.local/share. @throws ConfigError for a name that is no file name
std::filesystem::path known_network_path(const std::string& name);

/// Opens the network whose weights the checkpoint has, all of them under one prefix and no others.
/// Shapes may differ as far as the graph allows (number of classes, widths); the model's notes list
/// such weights. Of several networks, the one with most shapes in common is chosen.
/// @throws UnsupportedError, saying what to do, if none fits; IoError; ModelError
KnownNetwork open_known_network(const std::string& checkpoint);

}  // namespace parsimony
