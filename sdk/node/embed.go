// Package node holds the files of the SDK for Node, which new extensions get a copy of.
package node

import "embed"

// Files are those of the npm package.
//
//go:embed lib proto index.d.ts package.json README.md LICENSE
var Files embed.FS
