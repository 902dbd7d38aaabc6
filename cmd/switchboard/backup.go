package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	return group("backup", "Back up and restore everything", newBackupCreate(), newBackupList(), newBackupVerify(),
		newBackupRestore())
}

func newBackupCreate() *cobra.Command {
	c := &cobra.Command{
		Use: "create [FILE]", Short: "Make a backup, also while the kernel runs", Args: cobra.MaximumNArgs(1),
		Long: "Makes one file, a tar.gz, with the store, config.yaml, the dropped-in extensions and the files of\n" +
			"extensions, and checks it. Without FILE it goes to backups/ in the home, beside the nightly backups.\n" +
			"It contains all conversations, and with --secrets also the tokens: keep it private.",
		Example: "  switchboard backup create\n  switchboard backup create /media/stick/switchboard.tar.gz --secrets",
	}
	asJSON := jsonFlag(c)
	secrets := c.Flags().Bool("secrets", false, "include secrets.env")
	c.RunE = func(c *cobra.Command, args []string) error {
		h, err := openHome()
		if err != nil {
			return err
		}
		file := ""
		if len(args) > 0 {
			if file, err = filepath.Abs(args[0]); err != nil {
				return fmt.Errorf("create a backup: %w", err)
			}
		}
		info, err := createBackup(c.Context(), h, file, *secrets)
		switch {
		case c.Context().Err() != nil:
			return errors.New("the backup was interrupted; nothing was written")
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

// createBackup lets the running kernel make a backup, or makes one if none runs.
func createBackup(ctx context.Context, h *config.Home, file string, secrets bool) (backup.Info, error) {
	k, err := dial(ctx, h)
	if err == nil {
		defer k.Close()
		return askBackup(ctx, k, file, secrets)
	}
	if !errors.Is(err, admin.ErrNotRunning) {
		return backup.Info{}, fmt.Errorf("create a backup: %w", err)
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
		return list(c, *asJSON, backup.List(h), "FILE KIND MADE SIZE | KIND SIZE",
			"There are no backups yet: `switchboard backup create` makes one.",
			func(p *printer, f backup.Found) []cell {
				size := humanize.IBytes(uint64(f.Bytes)) //nolint:gosec // not negative
				return []cell{text(f.File), text(f.Kind), text(p.clock(f.At)), text(size)}
			})
	}
	return c
}

func newBackupVerify() *cobra.Command {
	c := &cobra.Command{
		Use: "verify FILE", Short: "Check a backup and show what is in it", Args: cobra.ExactArgs(1),
		Long: "Unpacks a backup in the home (in the directory for temporary files if the home is not writable),\n" +
			"compares all sums, checks the store, and removes the unpacked files. It changes nothing, and works\n" +
			"without a kernel. The exit status is 1 if the backup cannot be used or lacks files of messages.",
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
			return fmt.Errorf("verify %s: %w", args[0], err)
		case *asJSON && len(info.Lost) > 0:
			return errors.Join(printJSON(c, info), errReported)
		case *asJSON:
			return printJSON(c, info)
		}
		p := printerOf(c)
		if len(info.Lost) > 0 {
			p.line("%s is intact, but lacks %s of messages.", info.File, count(len(info.Lost), "file"))
			p.backup(info)
			return errReported
		}
		p.line("%s is intact.", info.File)
		p.backup(info)
		return nil
	}
	return c
}

// unpackIn returns the directory in which to unpack a backup: in the home if it is
// writable, as its disk has room for a store, else that for temporary files.
func unpackIn(h *config.Home) string {
	if h.Writable() != nil {
		return os.TempDir()
	}
	return h.Backups()
}

func newBackupRestore() *cobra.Command {
	c := &cobra.Command{
		Use: "restore FILE", Short: "Restore a backup", Args: cobra.ExactArgs(1),
		Long: "Checks a backup and replaces the store, config.yaml, the dropped-in extensions and the files of\n" +
			"extensions with it; secrets.env only if the backup has it. The replaced files are kept in a directory\n" +
			"of the home. Stop the kernel first. Everything since the backup is forgotten: see docs/operating.md.",
	}
	asJSON := jsonFlag(c)
	storeOnly := c.Flags().Bool("store-only", false, "restore only the store")
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
			p.line("The replaced files are kept in %s.", r.Before)
		}
		p.faint("`switchboard run` starts the kernel on it.")
		return nil
	}
	return c
}

// mostLost is how many lost files of a backup are named.
const mostLost = 10

// backup describes a backup.
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
		count(i.Keys["scheduler/schedule"], "schedule"), waits(i.Unsettled, "delivery", "deliveries"),
		count(i.DeadLetters, "dead letter"))
	if i.Secrets {
		p.line("  with secrets.env")
	} else {
		p.line("  without secrets.env")
	}
	if n := len(i.Beside); n > 0 {
		p.line("  %s of messages beside it, in %s", count(n, "file"),
			filepath.Join(filepath.Dir(i.File), "files"))
	}
	for n, hash := range i.Lost {
		if n == mostLost {
			p.line("  %s: %d more", p.paint(red, "lost"), len(i.Lost)-n)
			break
		}
		p.line("  %s: the file %s of a message is missing or damaged", p.paint(red, "lost"), hash)
	}
	if slices.ContainsFunc(i.Lost, func(hash string) bool { return slices.Contains(i.Beside, hash) }) {
		p.faint("  A nightly backup keeps the files of messages beside it: copy backups/files of the home there too.")
	}
	for _, name := range i.LeftOut {
		p.line("  %s: %s is a link or special file", p.paint(yellow, "skipped"), name)
	}
}

// backups reports a failed nightly backup.
func (p *printer) backups(s backup.State) {
	if s.Failure != "" {
		p.line("%s", p.paint(red, fmt.Sprintf("The nightly backup failed at %s: %s", p.clock(*s.FailedAt), s.Failure)))
	}
}

// newestBackup summarizes the backups.
func (p *printer) newestBackup(s backup.State) string {
	words := "none yet"
	if s.Newest != nil {
		size := humanize.IBytes(uint64(s.Newest.Bytes)) //nolint:gosec // not negative
		words = p.clock(s.Newest.At) + ", " + size
	}
	switch {
	case !s.Nightly:
		words += "; nightly backups are off"
	case s.Next != nil:
		words += "; next " + s.Next.In(p.zone).Format("2006-01-02 15:04")
	}
	return words
}
