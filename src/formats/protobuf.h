// Includes protozero for protocol buffer messages and makes it use std::string_view.
#pragma once

#include <string_view>

#define PROTOZERO_USE_VIEW std::string_view
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
