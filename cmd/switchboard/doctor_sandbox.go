package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/home/support"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// sandboxes reports the limits of extensions by process.
func (d *diagnosis) sandboxes(s admin.Status) {
	const area = "Sandbox"
	level := levelNote
	if support.Detect().Level() == support.LevelFull {
		level = levelOK
	}
	d.add(area, level, "", "%s", s.Sandbox)
	if os.Geteuid() == 0 {
		d.add(area, levelNote, "run it as its own user", "the kernel runs as root: extensions can read root's files in /etc")
	}
	byProcess := map[int64][]*adminv1.Extension{}
	var pids []int64
	for _, x := range s.Extensions {
		if x.Sandbox == nil {
			continue
		}
		if byProcess[x.Pid] == nil {
			pids = append(pids, x.Pid)
		}
		byProcess[x.Pid] = append(byProcess[x.Pid], x)
	}
	for _, pid := range pids {
		all := byProcess[pid]
		var ids []string
		for _, x := range all {
			ids = append(ids, x.Id)
		}
		slices.Sort(ids)
		box := all[0].Sandbox
		if box.Level == support.LevelNone {
			i := slices.IndexFunc(all, func(x *adminv1.Extension) bool {
				return !strings.HasPrefix(x.Sandbox.Reason, "an extension that shares")
			})
			d.add(area, levelWarning, "", "%s: not limited: %s", strings.Join(ids, ", "), all[max(0, i)].Sandbox.Reason)
			continue
		}
		text := fmt.Sprintf("%s: own files, %s", strings.Join(ids, ", "), strings.Split(box.Network, " (")[0])
		if len(box.Files) > 0 {
			text += "; also " + strings.Join(box.Files, ", ")
		}
		d.add(area, levelOK, "", "%s", text)
	}
}
