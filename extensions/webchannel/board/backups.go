package board

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

const backupsPath = "/board/backups"

// backupState is the state of the installation's backups, as Status has it.
type backupState struct {
	Nightly bool       `json:"nightly"`
	Next    *time.Time `json:"next"`
	Newest  *struct {
		File  string    `json:"file"`
		At    time.Time `json:"at"`
		Bytes uint64    `json:"bytes"`
	} `json:"newest"`
	Kept     int        `json:"kept"`
	Failure  string     `json:"failure"`
	FailedAt *time.Time `json:"failed_at"`
}

// backups shows the backups and makes one.
func (b *board) backups(mux *http.ServeMux) {
	b.page(mux, backupsPath, owners, door.ScopeAdmin, func(q *request) (*sheet, error) {
		status, err := b.Read.Status(q.Context(), &adminv1.StatusRequest{})
		if err != nil {
			return nil, err
		}
		var state backupState
		if len(status.GetBackup()) > 0 {
			if err := json.Unmarshal(status.GetBackup(), &state); err != nil {
				return nil, fmt.Errorf("read the state of the backups: %w", err)
			}
		}
		nightly := q.state("disabled")
		if state.Nightly {
			nightly = cell{Text: q.say("every night"), Class: "ok"}
		}
		about := block{Facts: []fact{
			{q.say("By itself"), nightly}, {q.say("Nightly backups kept"), text(fmt.Sprint(state.Kept))},
		}}
		if state.Next != nil {
			about.Facts = append(about.Facts, fact{q.say("Next"), q.moment(*state.Next)})
		}
		if n := state.Newest; n != nil {
			about.Facts = append(about.Facts, fact{q.say("Newest"), q.moment(n.At)},
				fact{q.say("Size"), text(humanize.IBytes(n.Bytes))}, fact{q.say("File"), cell{Text: n.File, Code: true}})
		} else {
			about.Text = append(about.Text, q.say("There are no backups yet. Make one now."))
		}
		if state.Failure != "" {
			problem := q.say("The nightly backup failed: %s", q.translate(state.Failure))
			if state.FailedAt != nil {
				problem += " (" + q.moment(*state.FailedAt).Text + ")"
			}
			about.Problems = append(about.Problems, problem)
		}
		about.Forms = []form{{
			Action: backupsPath + "/create", Label: q.say("Make a backup now"), Open: true, Fields: []field{{
				Name: "secrets", Label: q.say("with the tokens and keys of secrets.env"), Type: "check",
				Hint: q.say("Keep such a file as private as the keys in it."),
			}},
		}}
		return &sheet{Title: q.say("Backups"), Blocks: []block{about, {Text: []string{
			q.say("A backup has all conversations, settings and files. It is made in backups/ in the home; copy it to another " +
				"machine. `switchboard backup restore` restores one, while the kernel is stopped."),
		}}}}, nil
	})
	b.change(mux, backupsPath+"/create", owners, door.ScopeAdmin, func(q *request) (string, string, error) {
		made, err := b.Manage.Backup(q.Context(), &adminv1.BackupRequest{Secrets: q.field("secrets") == "yes"})
		if err != nil {
			return "", "", err
		}
		var info struct {
			File  string `json:"file"`
			Bytes uint64 `json:"bytes"`
		}
		if err := json.Unmarshal(made.GetInfo(), &info); err != nil {
			return "", "", fmt.Errorf("read what the backup holds: %w", err)
		}
		return backupsPath, q.say("The backup is made: %s, %s.", info.File, humanize.IBytes(info.Bytes)), nil
	})
}
