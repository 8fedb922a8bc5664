// The errors a user of the library can meet. The library throws and never prints.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "parsimony/base/ids.h"
#include "parsimony/base/words.h"

namespace parsimony {

/// Base class of everything the library throws for a fault that is not its own. The message is put
/// together from texts and integers:
///
///     throw ModelError("tensor ", in_quotes(name), ": element ", index, " is not a number");
class Error : public std::runtime_error {
 public:
  template <Piece... Pieces>
  requires(sizeof...(Pieces) > 0) explicit Error(const Pieces&... pieces)
      : std::runtime_error(str_cat(pieces...)) {}
};

/// A configuration, plan or option is invalid.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// The request is valid, but this version does not support it.
class UnsupportedError : public Error {
 public:
  using Error::Error;
};

/// The model file contradicts itself or its specification.
class ModelError : public Error {
 public:
  using Error::Error;
};

/// The operands of one node contradict each other.
class ShapeError : public ModelError {
 public:
  template <Piece... Pieces>
  explicit ShapeError(NodeId node, const Pieces&... pieces) : ModelError(pieces...), node_(node) {}

  NodeId node() const { return node_; }  ///< index in Graph::nodes

 private:
  NodeId node_;
};

/// A file cannot be read or written.
class IoError : public Error {
 public:
  using Error::Error;
};

/// The small model does not compute what it should.
class VerificationError : public Error {
 public:
  using Error::Error;
};

/// "name", as messages show it.
std::string in_quotes(std::string_view text);

/// "a", "b" or "c"
std::string one_of(std::span<const std::string_view> words);

/// "a", "b" and "c"
std::string each_of(std::span<const std::string> words);

/// " Did you mean "a" or "b"?" for the candidates closest to `requested`; empty if none is near.
std::string did_you_mean(std::string_view requested, std::span<const std::string> candidates);

namespace errors {

ModelError bad_dimension(std::string_view tensor, std::string_view dims);
/// `cause` is an errno.
IoError cannot_read(std::string_view path, int cause);
IoError cannot_write(std::string_view path, int cause);

}  // namespace errors
}  // namespace parsimony
