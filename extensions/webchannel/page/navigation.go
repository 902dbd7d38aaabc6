package page

import (
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// Entry is an entry of the navigation.
type Entry struct {
	Path   string
	Title  string
	Active bool
}

// Navigation is the entries that the visitor may use.
func (v View) Navigation() (all []Entry) {
	add := func(path, title, scope string) {
		if v.Visitor.May(scope, false) {
			active := v.Active == path
			all = append(all, Entry{path, title, active})
		}
	}
	say := func(text string) string { return words.Say(v.Visitor.Language, text) }
	add("/", say("Chat"), door.ScopeMessages)
	add("/board", say("Now"), door.ScopeAdmin)
	add("/board/questions", say("Questions"), door.ScopeMessages)
	add("/board/sessions", say("Sessions"), door.ScopeSessions)
	add("/board/schedules", say("Schedules"), door.ScopeSchedules)
	add("/board/tasks", say("Tasks"), door.ScopeTasks)
	add("/board/memory", say("Memory"), door.ScopeMemory)
	add("/board/people", say("People"), door.ScopePeople)
	add("/board/channels", say("Channels"), door.ScopeChannels)
	add("/board/extensions", say("Extensions"), door.ScopeAdmin)
	if v.Visitor.Role == "member" && v.Visitor.Token == "" { // their own
		all = append(all, Entry{"/board/usage", say("Usage"), v.Active == "/board/usage"})
	}
	add("/board/usage", say("Usage"), door.ScopeUsage)
	add("/board/deadletters", say("Dead letters"), door.ScopeAdmin)
	add("/board/backups", say("Backups"), door.ScopeAdmin)
	add("/board/configuration", say("Configuration"), door.ScopeAdmin)
	if v.Visitor.Token == "" {
		all = append(all, Entry{"/board/logins", say("Logins"), v.Active == "/board/logins"})
	}
	return all
}
