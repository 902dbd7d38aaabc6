package manifests

import "embed"

// Prefix precedes the file names in messages about built-in manifests.
const Prefix = "manifests"

// FS holds one <id>.yaml for each built-in extension, in the same format as the manifests
// of third parties; only run.builtin differs.
//
//go:embed *.yaml
var FS embed.FS
