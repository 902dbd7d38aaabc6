package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/home/cluster/link"
)

func newClusterKey() *cobra.Command {
	return group("key", "Show or set the key that the machines of a cluster share",
		&cobra.Command{
			Use: "show", Short: "Print the key of the cluster", Args: cobra.NoArgs,
			Long: "Prints the key, which the first machine of a cluster has made. Anyone who has it and can reach a\n" +
				"machine of the cluster can do everything there: copy it over a private connection, such as ssh.",
			RunE: func(c *cobra.Command, _ []string) error {
				h, err := findHome()
				if err != nil {
					return err
				}
				k, err := link.ReadKey(h.ClusterKey())
				if errors.Is(err, fs.ErrNotExist) {
					return fmt.Errorf("show the key of the cluster: this machine has none; the first machine makes it when it " +
						"starts with `switchboard run --cluster`")
				}
				if err != nil {
					return err
				}
				printerOf(c).line("%s", k.Text())
				return nil
			},
		},
		&cobra.Command{
			Use: "set", Short: "Read the key of the cluster from standard input and store it", Args: cobra.NoArgs,
			Example: "  ssh kitchen switchboard cluster key show | switchboard cluster key set",
			RunE: func(c *cobra.Command, _ []string) error {
				h, err := openHome()
				if err != nil {
					return err
				}
				text, err := io.ReadAll(io.LimitReader(c.InOrStdin(), 1<<10))
				if err != nil {
					return fmt.Errorf("read the key of the cluster: %w", err)
				}
				k, err := link.ParseKey(string(text))
				if err != nil {
					return err
				}
				old, err := link.ReadKey(h.ClusterKey())
				switch {
				case err == nil && old.Fingerprint() == k.Fingerprint():
					printerOf(c).line("This machine has this key already.")
					return nil
				case !errors.Is(err, fs.ErrNotExist):
					return fmt.Errorf("set the key of the cluster: %s exists: move it away first", h.ClusterKey())
				}
				if err := link.WriteKey(h.ClusterKey(), k); err != nil {
					return err
				}
				printerOf(c).line("Stored. It counts from the next start of `switchboard run --cluster`.")
				return nil
			},
		})
}
