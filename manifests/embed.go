package manifests

import "embed"

// Prefix precedes the file names in messages about built-in manifests.
const Prefix = "manifests"

// FS holds one <id>.yaml for each built-in extension. They are read exactly as
// those of a third party are; only run.builtin differs.
//
//go:embed *.yaml
var FS embed.FS
