package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// One person's budget is used up, also after a kill, while another one goes on.
func TestBudgetOfOnePerson(t *testing.T) {
	t.Parallel()
	w, zone := newWorld(t, withTelegram(), withModel), noon()
	budget := func(n int) {
		w.config(fmt.Sprintf("timezone: %s\nchannels: {telegram_channel: {allow_from: [\"%d\", \"%d\"]}}\n"+
			"people: {boris: {daily_tokens: %d}, Clara: {monthly_tokens: 5}}\n", zone, anna, boris, n))
	}
	budget(1000)
	w.start()
	w.telegramReady()
	w.model.Always(openaitest.Answer{Text: "Fine.", Input: 1000, Output: 200})
	says := func(id int64, name, text string) {
		w.telegram.Inject(telegramtest.Incoming{From: telegramtest.User{ID: id, FirstName: name}, Text: text})
	}
	heard := func(chat int64, words string) {
		t.Helper()
		w.eventually(words, func() bool {
			return slices.ContainsFunc(w.texts(chat), func(text string) bool { return strings.Contains(text, words) })
		})
	}
	says(anna, "Anna", "one")
	heard(anna, "Fine.")
	says(boris, "Boris", "two")
	heard(boris, "Fine.")
	heard(anna, "120 % of today's limit of 1000 tokens for boris is used (people.boris.daily_tokens: 1000)")
	w.settled()
	w.restart()
	w.telegramReady()
	says(boris, "Boris", "three")
	heard(boris, "You have used your 1,000 tokens for today. From midnight I can think again.")
	n := w.model.Total()
	says(anna, "Anna", "four")
	w.eventually("an answer for Anna", func() bool {
		return w.model.Total() > n && strings.Count(strings.Join(w.texts(anna), "\n"), "Fine.") == 2
	})
	w.settled()
	rows := map[string]int{}
	for _, r := range w.usage("--by", "person") {
		rows[r.Name] = r.Input + r.Output
	}
	if rows["Anna"] != 2400 || rows["Boris"] != 1200 || len(rows) != 2 {
		t.Errorf("by person: %v", rows)
	}
	out, _, _ := w.cli("doctor", "--offline")
	contains(t, "doctor", out, "people.Clara in config.yaml has no effect: no known person has that name")
	if strings.Contains(out, "people.boris in config.yaml") {
		t.Errorf("doctor complains of Boris: %s", out)
	}
	budget(5000)
	before := strings.Count(strings.Join(w.texts(boris), "\n"), "Fine.")
	w.eventually("an answer within the higher budget", func() bool {
		says(boris, "Boris", "five")
		w.settled()
		return strings.Count(strings.Join(w.texts(boris), "\n"), "Fine.") > before
	})
}
