package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/manifests/strictyaml"
)

func newConfigCommand() *cobra.Command {
	return group("config", "The settings in config.yaml", newConfigShow(), newConfigCheck(), newConfigPath())
}

func newConfigShow() *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Show all settings, with the defaults", Args: cobra.NoArgs,
		Long: "Shows all settings as config.yaml has them, and the defaults for what it doesn't say. Secrets aren't among\n" +
			"them. The manifest of an extension has the defaults of extensions.<id>.config.",
		RunE: func(c *cobra.Command, _ []string) error {
			h, err := findHome()
			if err != nil {
				return err
			}
			settings, err := config.Load(h.Config())
			if err != nil {
				return fmt.Errorf("the configuration has errors; fix them first:\n%w", err)
			}
			text, err := strictyaml.Encode(settings)
			if err != nil {
				return err
			}
			p := printerOf(c)
			if settings.Timezone == "" {
				_, zone := settings.Zone(config.ThisMachine())
				p.line("# timezone: %s, as this machine has it", zone)
			}
			_, err = p.w.Write(text)
			return err
		},
	}
}

func newConfigCheck() *cobra.Command {
	return &cobra.Command{
		Use: "check", Short: "Check config.yaml, secrets.env and what they name", Args: cobra.NoArgs,
		Long: "Checks the files before a kernel reads them, and lists each mistake with its place. The exit status is 1\n" +
			"if there is one. `switchboard doctor` checks everything else.",
		RunE: func(c *cobra.Command, _ []string) error {
			h, err := findHome()
			if err != nil {
				return err
			}
			p := printerOf(c)
			if !h.Exists() {
				p.line("%s doesn't exist yet: the defaults are in force.", h.Path())
				return nil
			}
			seen, err := inspect(h)
			if err != nil {
				return err
			}
			var mistakes []string
			for _, err := range []error{seen.ConfigErr, seen.SecretsErr} {
				if err != nil {
					mistakes = append(mistakes, err.Error())
				}
			}
			for _, problem := range seen.References {
				mistakes = append(mistakes, problem.String())
			}
			for _, e := range seen.Entries {
				if e.Err != nil && e.Builtin { // else doctor has it: its files are not the configuration
					mistakes = append(mistakes, e.Err.Error())
				}
			}
			if len(mistakes) > 0 {
				p.line("%s", strings.Join(mistakes, "\n"))
				return errReported
			}
			p.line("config.yaml and secrets.env have no mistakes.")
			return nil
		},
	}
}

func newConfigPath() *cobra.Command {
	return &cobra.Command{
		Use: "path", Short: "Print where config.yaml is, or would be", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			h, err := findHome()
			if err == nil {
				printerOf(c).line("%s", h.Config())
			}
			return err
		},
	}
}
