// Package python holds the SDK for extensions in Python, which `switchboard extensions new`
// copies into a new extension. Its promises are in switchboard/__init__.py and README.md.
package python

import "embed"

// SDK holds the package switchboard with its generated modules.
//
//go:embed switchboard/*.py switchboard/py.typed switchboard/*/v1/*.py switchboard/*/v1/*.pyi
var SDK embed.FS
