package home

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/near"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/internal/filewatch"
)

// Found is an extension by the files of a home.
type Found struct{ Builtin, Enabled bool }

// Find returns an extension, or an error that suggests another name.
func Find(o Options, id string) (x Found, err error) {
	settings, err := config.Load(o.Home.Config())
	if err != nil {
		return x, fmt.Errorf("%w: config.yaml has errors; fix them first:\n%w", contract.ErrInvalid, err)
	}
	seen, err := Inspect(o)
	if err != nil {
		return x, err
	}
	var ids []string
	for _, e := range seen.Entries {
		if e.ID == id {
			optional := e.Manifest != nil && e.Manifest.Optional
			return Found{Builtin: e.Builtin, Enabled: settings.EnabledExtension(id, optional)}, nil
		}
		ids = append(ids, e.ID)
	}
	hint := "`switchboard extensions list` lists them"
	if s := near.Best(id, ids); s != "" {
		hint = fmt.Sprintf("did you mean %s?", s)
	}
	return x, fmt.Errorf("%w: there is no extension %s (%s)", contract.ErrNotFound, id, hint)
}

// Enable writes into config.yaml whether an extension takes part, and keeps its comments.
// Changed is false if it was so before.
func Enable(o Options, id string, on bool) (changed bool, err error) {
	x, err := Find(o, id)
	if err != nil || x.Enabled == on {
		return false, err
	}
	file := o.Home.Config()
	text, err := filewatch.Read(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	edited, err := config.Edit(file, text, config.Setting{Path: []string{"extensions", id, "enabled"}, Value: on})
	if err != nil {
		return false, err
	}
	return true, config.Replace(file, edited)
}
