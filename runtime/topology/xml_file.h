// An XML file, parsed, with line numbers for messages. Only what topologies need: no entities, no
// document types of their own, bounded size, depth and number of elements.
#pragma once

#include <pugixml.hpp>
#include <string>
#include <string_view>

#include "runtime/common/status.h"

namespace bitrail::topology {

inline constexpr size_t kMaxFile = size_t{16} << 20;

struct XmlFile {
  std::string name;  // of the file, for messages
  std::string text;
  pugi::xml_document document;
};

// Fills *file; `text` is what the file holds. Failures say "NAME:LINE: ...".
Status parse_xml(std::string name, std::string text, XmlFile* file);

int line_of(const XmlFile& file, pugi::xml_node node);
// "NAME:LINE: <pci busid="0000:4f:00.0">", to begin a message.
std::string where(const XmlFile& file, pugi::xml_node node);

// An attribute's whole number within [low, high]; `standard` if it is missing or empty.
Status whole_number(const XmlFile& file, pugi::xml_node node, const char* attribute, int64_t low,
                    int64_t high, int64_t standard, int64_t* value);
// The same for a number that may be written 0x1f.
Status any_number(const XmlFile& file, pugi::xml_node node, const char* attribute, uint64_t* value);
// Text of at most kMaxName bytes without control characters; empty where it is missing.
Status plain_text(const XmlFile& file, pugi::xml_node node, const char* attribute,
                  std::string* value);
// The same for an attribute that has to be there.
Status required(const XmlFile& file, pugi::xml_node node, const char* attribute,
                std::string* value);

}  // namespace bitrail::topology
