#include "tests/support/event_file.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string_view>

#include "parsimony/base/files.h"
#include "parsimony/base/hash.h"

namespace parsimony::test {
namespace {

namespace pb = google::protobuf;

// What event.proto and summary.proto of TensorFlow say of scalars, as protoc would tell it.
constexpr const char* kSchema = R"(
  name: "event.proto"
  syntax: "proto3"
  message_type {
    name: "Event"
    field { name: "wall_time" number: 1 type: TYPE_DOUBLE }
    field { name: "step" number: 2 type: TYPE_INT64 }
    field { name: "file_version" number: 3 type: TYPE_STRING }
    field { name: "summary" number: 5 type: TYPE_MESSAGE type_name: "Summary" }
  }
  message_type {
    name: "Summary"
    field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: "Value" }
  }
  message_type {
    name: "Value"
    field { name: "tag" number: 1 type: TYPE_STRING }
    field { name: "simple_value" number: 2 type: TYPE_FLOAT }
  })";

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

template <typename Number>
Number taken(std::string_view& bytes) {
  Number number{};
  require(bytes.size() >= sizeof number, "the file ends within a record");
  std::memcpy(&number, bytes.data(), sizeof number);
  bytes.remove_prefix(sizeof number);
  return number;
}

/// `length` bytes, with their masked checksum behind them.
std::string_view checked(std::string_view& bytes, uint64_t length) {
  require(bytes.size() >= length, "the file ends within a record");
  const std::string_view part = bytes.substr(0, length);
  bytes.remove_prefix(length);
  const uint32_t sum = taken<uint32_t>(bytes) - 0xa282ead8;
  require(((sum >> 17) | (sum << 15)) == crc32c(part), "a checksum is wrong");
  return part;
}

class EventReader {
 public:
  EventReader() {
    pb::FileDescriptorProto file;
    require(pb::TextFormat::ParseFromString(kSchema, &file), "the schema is wrong");
    const pb::FileDescriptor* built = pool_.BuildFile(file);
    require(built != nullptr, "the schema is wrong");
    event_ = built->FindMessageTypeByName("Event");
  }

  Event read(std::string_view bytes) {
    const std::unique_ptr<pb::Message> message(factory_.GetPrototype(event_)->New());
    require(message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())), "no message");
    const pb::Reflection& fields = *message->GetReflection();
    require(fields.GetUnknownFields(*message).empty(), "a field is unknown");
    Event event{fields.GetDouble(*message, field(*message, "wall_time")),
                fields.GetInt64(*message, field(*message, "step")),
                fields.GetString(*message, field(*message, "file_version")),
                {}};
    const pb::Message& summary = fields.GetMessage(*message, field(*message, "summary"));
    const pb::Reflection& list = *summary.GetReflection();
    for (int i = 0; i < list.FieldSize(summary, field(summary, "value")); ++i) {
      const pb::Message& value = list.GetRepeatedMessage(summary, field(summary, "value"), i);
      const pb::Reflection& parts = *value.GetReflection();
      const auto [at, is_new] =
          event.scalars.try_emplace(parts.GetString(value, field(value, "tag")),
                                    parts.GetFloat(value, field(value, "simple_value")));
      require(is_new, "a tag is there twice");
    }
    return event;
  }

 private:
  static const pb::FieldDescriptor* field(const pb::Message& message, const char* name) {
    return message.GetDescriptor()->FindFieldByName(name);
  }

  pb::DescriptorPool pool_;
  pb::DynamicMessageFactory factory_{&pool_};
  const pb::Descriptor* event_ = nullptr;
};

}  // namespace

std::vector<Event> read_events(const std::string& bytes) {
  EventReader reader;
  std::vector<Event> events;
  for (std::string_view rest = bytes; !rest.empty();) {
    std::string_view length = checked(rest, sizeof(uint64_t));
    events.push_back(reader.read(checked(rest, taken<uint64_t>(length))));
  }
  return events;
}

std::map<std::string, Points> read_run(const std::string& folder) {
  std::map<std::string, Points> run;
  for (const std::string& path : event_files(folder)) {
    for (const Event& event : read_events(read_file(path))) {
      for (const auto& [tag, value] : event.scalars) run[tag].emplace_back(event.step, value);
    }
  }
  return run;
}

std::vector<std::string> event_files(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) {
      paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace parsimony::test
