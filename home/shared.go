package home

import (
	"fmt"
	"path"

	"github.com/switchboard-run/switchboard/contract/mcpfile"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/home/consent"
	"github.com/switchboard-run/switchboard/manifests"
)

// CheckShared returns what is wrong with the text of a file that the nodes of a cluster
// share. What depends on a node, such as its secrets, is left out.
func CheckShared(name string, text []byte) error {
	var err error
	switch name {
	case "config.yaml":
		_, err = config.Parse(name, text)
	case "mcp.json":
		_, err = mcpfile.Read(text, mcpfile.Options{
			File: name, Lookup: func(string) (string, bool) { return "x", true }, Home: "/",
		})
	case "consent.json":
		err = consent.Check(text)
	default:
		var m *manifests.Manifest
		if m, err = manifests.Parse(name, text); err == nil && m.ID != path.Base(path.Dir(name)) {
			err = fmt.Errorf("%s: the id %s is not the name of its directory", name, m.ID)
		}
	}
	return err
}
