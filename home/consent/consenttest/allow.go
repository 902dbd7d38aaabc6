// Package consenttest allows extensions what they ask for, for tests and measurements that
// drop them in.
package consenttest

import (
	"path/filepath"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/home/consent"
	"github.com/switchboard-run/switchboard/manifests"
)

// Allow allows an extension of a home what the text of its manifest asks for. An invalid
// one asks for nothing.
func Allow(home, id, manifest string) error {
	h, err := config.FindHome(func(name string) (string, bool) { return home, name == config.HomeEnv })
	if err != nil {
		return err
	}
	m, err := manifests.Parse(filepath.Join(h.Extensions(), id, manifests.FileName), []byte(manifest))
	if err != nil {
		return nil //nolint:nilerr // it does not start, whatever it asks for
	}
	names := m.Run.Env
	for _, s := range m.Secrets {
		names = append(names, s.Name)
	}
	_, err = consent.Update(h, nil, func(d consent.Decisions) (bool, error) {
		d[id] = consent.Decision{Allowed: m.Asks(names...), Manifest: manifest, By: "a test"}
		return true, nil
	})
	return err
}
