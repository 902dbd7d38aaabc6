package home

import (
	"errors"
	"fmt"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/home/install"
	"github.com/switchboard-run/switchboard/manifests"
)

// OpenInstaller opens an installer of extensions for a home. The options need no home,
// environment, version or check of their own.
func OpenInstaller(o Options, io install.Options) (*install.Installer, error) {
	builtins, err := manifests.LoadBuiltin(o.Builtins, o.BuiltinsPrefix)
	if err != nil {
		return nil, err
	}
	settings, err := config.Load(o.Home.Config())
	if err != nil { // as a kernel that runs, it goes on without the new version of the file
		settings = config.Default()
	}
	builtins = withProviders(builtins, settings)
	io.Home, io.KernelVersion, io.Environ = o.Home, o.Version, o.Environ
	io.Check = func(m *manifests.Manifest) error { return o.installable(builtins, settings, m) }
	return install.Open(io)
}

// installable returns an error if an extension could not start in this home, whatever else
// is installed.
func (o Options) installable(builtins []manifests.Entry, settings *config.Config, m *manifests.Manifest) error {
	for _, b := range builtins {
		if b.ID == m.ID {
			return fmt.Errorf("%s is the id of a built-in extension: the extension needs another one", m.ID)
		}
	}
	set := manifests.Resolve([]manifests.Entry{{ID: m.ID, File: m.File, Manifest: m}}, manifests.Options{
		KernelVersion: o.Version, Refuse: refuseFor(o, settings),
	})
	for _, d := range set.Disabled {
		if d.Cause != manifests.Missing { // it may be installed later
			return errors.New(d.Reason)
		}
	}
	return nil
}
