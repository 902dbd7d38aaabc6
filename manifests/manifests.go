// Package manifests holds the manifests of the built-in extensions. They are
// read exactly as those of a third party are; only run.builtin differs.
package manifests

import "embed"

// Prefix stands before the file names in messages.
const Prefix = "manifests"

// FS holds one <id>.yaml for each built-in extension.
//
//go:embed *.yaml
var FS embed.FS
