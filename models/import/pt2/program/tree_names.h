#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::pt2 {

/// Returns names for the leaves of a treespec of PyTorch, the nesting of a model's Python results: keys of dicts and
/// fields of data classes ("logits"), or "output" and "output_0", .. for a tensor and a tuple. Parts of a path are
/// separated by dots. An empty text, and a tree with another number of leaves, is a tuple of `count`.
std::vector<std::string> tree_names(std::string_view treespec, std::size_t count);

}  // namespace lathe::pt2
