package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/home"
	"github.com/switchboard-run/switchboard/home/backup"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

func newBackupCommand() *cobra.Command {
	return group("backup", "Copies of everything, and the way back", newBackupCreate(), newBackupList(), newBackupVerify(), newBackupRestore())
}

func newBackupCreate() *cobra.Command {
	c := &cobra.Command{
		Use: "create [FILE]", Short: "Make a backup, also while the kernel runs", Args: cobra.MaximumNArgs(1),
		Long: "Makes one file, a tar.gz, with the store, config.yaml, the dropped-in extensions and the files that\n" +
			"extensions keep, and checks it. Without FILE it goes to backups/ in the home, where the nightly ones are.\n" +
			"It has all conversations in it, and with --secrets also the tokens: keep it where nobody else reads it.",
		Example: "  switchboard backup create\n  switchboard backup create /media/stick/switchboard.tar.gz --secrets",
	}
	asJSON := jsonFlag(c)
	secrets := c.Flags().Bool("secrets", false, "secrets.env too")
	c.RunE = func(c *cobra.Command, args []string) error {
		h, err := openHome()
		if err != nil {
			return err
		}
		file := ""
		if len(args) > 0 {
			if file, err = filepath.Abs(args[0]); err != nil {
				return fmt.Errorf("making a backup: %w", err)
			}
		}
		info, err := createBackup(c.Context(), h, file, *secrets)
		switch {
		case c.Context().Err() != nil:
			return errors.New("making a backup: interrupted; nothing is left of it")
		case err != nil:
			return err
		case *asJSON:
			return printJSON(c, info)
		}
		p := printerOf(c)
		p.line("%s", info.File)
		p.backup(info)
		return nil
	}
	return c
}

// createBackup asks the kernel for one, or makes it if none runs.
func createBackup(ctx context.Context, h *config.Home, file string, secrets bool) (backup.Info, error) {
	k, err := dial(ctx, h)
	if err == nil {
		defer k.Close()
		return askBackup(ctx, k, file, secrets)
	}
	if !errors.Is(err, admin.ErrNotRunning) {
		return backup.Info{}, fmt.Errorf("making a backup: %w", err)
	}
	if file == "" {
		file = backup.Name(h, time.Now())
	}
	return home.CreateBackup(ctx, h, version, file, secrets)
}

func askBackup(ctx context.Context, k *admin.Client, file string, secrets bool) (info backup.Info, err error) {
	made, err := k.Backup(ctx, &adminv1.BackupRequest{File: file, Secrets: secrets})
	if err == nil {
		err = json.Unmarshal(made.GetInfo(), &info)
	}
	return info, err
}

func newBackupList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List the backups in the home, the newest first", Args: cobra.NoArgs}
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		h, err := findHome()
		if err != nil {
			return err
		}
		return list(c, *asJSON, backup.List(h), "FILE KIND MADE SIZE", "There are none yet: `switchboard backup create` makes one.",
			func(p *printer, f backup.Found) []cell {
				return []cell{text(f.File), text(f.Kind), text(p.clock(f.At)), text(humanize.IBytes(uint64(f.Bytes)))} //nolint:gosec // not negative
			})
	}
	return c
}

func newBackupVerify() *cobra.Command {
	c := &cobra.Command{
		Use: "verify FILE", Short: "Read all of a backup, and say what is in it", Args: cobra.ExactArgs(1),
		Long: "Unpacks a backup in the home (among temporary files if nothing can be written there), compares all sums,\n" +
			"checks the store in it as a kernel would need it, and removes what it unpacked. It changes nothing, and\n" +
			"needs no kernel. The exit status is 1 if the backup\n" +
			"cannot be used.",
	}
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		h, err := findHome()
		if err != nil {
			return err
		}
		info, err := backup.Verify(c.Context(), args[0], unpackIn(h))
		switch {
		case c.Context().Err() != nil:
			return errReported
		case err != nil:
			return fmt.Errorf("verifying %s: %w", args[0], err)
		case *asJSON:
			return printJSON(c, info)
		}
		p := printerOf(c)
		p.line("%s is whole.", info.File)
		p.backup(info)
		return nil
	}
	return c
}

// unpackIn is where a backup is unpacked to look at it: in the home, whose disk
// holds a store anyway, or where there is none, or none that can be written,
// among temporary files.
func unpackIn(h *config.Home) string {
	if h.Writable() != nil {
		return os.TempDir()
	}
	return h.Backups()
}

func newBackupRestore() *cobra.Command {
	c := &cobra.Command{
		Use: "restore FILE", Short: "Put a backup in place of what is in the home", Args: cobra.ExactArgs(1),
		Long: "Checks a backup and puts it in place of the store, config.yaml, the dropped-in extensions and the files\n" +
			"that extensions keep; secrets.env only if the backup has it. What was there is kept in a directory of the\n" +
			"home. No kernel may run. What has happened since the backup is forgotten: see docs/operating.md.",
	}
	asJSON := jsonFlag(c)
	storeOnly := c.Flags().Bool("store-only", false, "leave the configuration, extensions and their files as they are")
	c.RunE = func(c *cobra.Command, args []string) error {
		h, err := openHome()
		if err != nil {
			return err
		}
		r, err := home.RestoreBackup(c.Context(), h, args[0], *storeOnly)
		switch {
		case err != nil && c.Context().Err() != nil:
			return errors.New("nothing was restored: interrupted")
		case err != nil:
			return err
		case *asJSON:
			return printJSON(c, r)
		}
		p := printerOf(c)
		p.line("%s is restored.", r.File)
		p.backup(r.Info)
		if r.Before != "" {
			p.line("What was there is kept in %s.", r.Before)
		}
		p.faint("`switchboard run` starts the kernel on it.")
		return nil
	}
	return c
}

// backup says what is in one.
func (p *printer) backup(i backup.Info) {
	made := "made " + p.clock(i.CreatedAt)
	if i.MadeBy != "" {
		made += " by version " + i.MadeBy
	}
	p.line("  %s, %s", made, humanize.IBytes(uint64(i.Bytes))) //nolint:gosec // not negative
	events := count(i.Events, "event")
	if i.FirstEvent != nil && i.LastEvent != nil {
		events += fmt.Sprintf(", %s to %s", p.clock(*i.FirstEvent), p.clock(*i.LastEvent))
	}
	p.line("  store version %d: %s", i.StoreVersion, events)
	p.line("  %s with %s, %s, %s, %s", count(i.Sessions, "session"), count(i.HistoryRows, "row"),
		count(i.Keys["scheduler/schedule"], "schedule"), waits(i.Unsettled, "delivery", "deliveries"), count(i.DeadLetters, "dead letter"))
	if i.Secrets {
		p.line("  with secrets.env")
	} else {
		p.line("  without secrets.env")
	}
	for _, name := range i.LeftOut {
		p.line("  %s: %s is a link or special file", p.paint(yellow, "left out"), name)
	}
}

// backups says how the nightly ones are.
func (p *printer) backups(s backup.State) {
	if s.Failure != "" {
		p.line("%s", p.paint(red, fmt.Sprintf("The nightly backup failed at %s: %s", p.clock(*s.FailedAt), s.Failure)))
	}
}

// newestBackup is in a few words what there is.
func (p *printer) newestBackup(s backup.State) string {
	words := "none yet"
	if s.Newest != nil {
		words = fmt.Sprintf("%s, %s", p.clock(s.Newest.At), humanize.IBytes(uint64(s.Newest.Bytes))) //nolint:gosec // not negative
	}
	switch {
	case !s.Nightly:
		words += "; none is made by itself"
	case s.Next != nil:
		words += "; next " + s.Next.In(p.zone).Format("2006-01-02 15:04")
	}
	return words
}
