package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
	"github.com/switchboard-run/switchboard/sdk/modelapi/modelapitest"
)

// spent is a row of `switchboard usage --json`.
type spent struct {
	Name      string
	Calls     int
	Input     int `json:"input_tokens"`
	Output    int `json:"output_tokens"`
	Cached    int `json:"cached_tokens"`
	Estimated int `json:"estimated_calls"`
	// Costs is in millionths of each currency.
	Costs map[string]int64 `json:"cost_micros"`
}

func (w *world) usage(args ...string) []spent {
	w.t.Helper()
	return list[[]spent](w, append([]string{"usage"}, args...)...)
}

// A limit that is reached is said once, with its reason, and asks no model; what
// was spent survives a kill; a higher limit counts at once.
func TestLimitOfTokens(t *testing.T) {
	t.Parallel()
	w, zone := newWorld(t, withModel), noon()
	limit := func(n int) { w.config(fmt.Sprintf("timezone: %s\nmodels: {daily_tokens: {total: %d}}\n", zone, n)) }
	limit(1000)
	w.start()
	p := w.attach()
	w.model.Queue(openaitest.Answer{Text: "First.", Input: 600, Output: 100},
		openaitest.Answer{Text: "Second.", Input: 200, Output: 100, Cached: 150})
	p.ask("one")
	p.say("two")
	p.hearsLike("Second.")
	p.hearsLike("100 % of today's limit of 1000 tokens for all models is used") // beyond four fifths
	w.settled()
	w.restart()
	p = w.attach()
	p.say("three")
	p.hearsLike("today's limit of 1000 tokens for all models is reached (models.daily_tokens: {total: 1000}): no model " +
		"is asked until midnight (" + zone + ")")
	if n := w.model.Total(); n != 2 {
		t.Errorf("the model was asked %d times", n)
	}
	if got := w.usage(); len(got) != 1 || got[0].Calls != 2 || got[0].Input != 800 || got[0].Output != 200 ||
		got[0].Cached != 150 || got[0].Estimated != 0 {
		t.Errorf("by day: %+v", got)
	}
	if got := w.usage("--by", "agent"); len(got) != 1 || got[0].Name != "orchestrator" {
		t.Errorf("by agent: %+v", got)
	}
	if got := w.usage("--by", "model"); len(got) != 1 || got[0].Name != "openai/test-model" {
		t.Errorf("by model: %+v", got)
	}
	if got := w.usage("--by", "session"); len(got) != 1 || !strings.HasPrefix(got[0].Name, "s") || got[0].Calls != 2 {
		t.Errorf("by session: %+v", got)
	}
	if got := w.must("usage", "--by", "model"); !strings.Contains(got, "openai/test-model") ||
		!strings.Contains(got, "1,000") {
		t.Errorf("for people: %s", got)
	}
	if _, complaint, code := w.cli("usage", "--by", "moon"); code == 0 ||
		!strings.Contains(complaint, "give one of day, agent, model, person, session") {
		t.Errorf("by the moon: %q, status %d", complaint, code)
	}

	limit(5000)
	w.model.Handle(func(openaitest.Request) openaitest.Answer { return openaitest.Say("Here again.") })
	w.eventually("an answer below the new limit", func() bool { return strings.Contains(p.ask("four"), "Here again.") })
	if n := strings.Count(strings.Join(p.texts(), "\n"), "tokens that models may use today"); n > 1 {
		t.Errorf("told %d times that the limit is near", n)
	}
}

// No more completions run at a time than the configuration says, whoever asks,
// and each conversation gets its answer once.
func TestCompletionsAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel, strangers())
	w.config("models: {concurrency: 2}\nchannels: {telegram_channel: {allow_from: [\"*\"]}}\n")
	w.start()
	w.telegramReady()
	gate := make(chan struct{})
	w.model.Handle(func(openaitest.Request) openaitest.Answer { return openaitest.Answer{Text: "Done.", Gate: gate} })
	const chats = 6
	for chat := range int64(chats) {
		w.telegram.AddChat(telegramtest.Chat{ID: 5001 + chat, Type: telegramtest.Private})
		w.telegram.Say(5001+chat, "hello")
	}
	w.eventually("a message of each chat", func() bool { return w.count("user.message") == chats })
	w.eventually("two completions under way", func() bool { return w.model.MaxConcurrent() == 2 })
	close(gate)
	for chat := range int64(chats) {
		if _, err := w.telegram.WaitMessage(w.ctx(), 5001+chat, 1); err != nil {
			t.Fatal(err)
		}
	}
	w.settled()
	if n, most := w.model.Total(), w.model.MaxConcurrent(); n != chats || most != 2 {
		t.Errorf("the model was asked %d times, %d at once", n, most)
	}
	if got := w.usage(); len(got) != 1 || got[0].Calls != chats {
		t.Errorf("the usage is %+v", got)
	}
}

// noon is a zone in which no day ends while a test runs.
func noon() string {
	switch ahead := 12 - time.Now().UTC().Hour(); {
	case ahead == 0:
		return "UTC"
	case ahead > 0:
		return fmt.Sprintf("Etc/GMT-%d", ahead) // these names count the other way
	default:
		return fmt.Sprintf("Etc/GMT+%d", -ahead)
	}
}

// Money is counted by the configured prices, cached tokens apart, and a limit of a month
// ends it, also after a kill.
func TestLimitOfMoney(t *testing.T) {
	t.Parallel()
	w, zone := newWorld(t), noon()
	model := openaitest.New(t)
	model.RequireKey(openaiKey)
	w.write("PAID_KEY="+openaiKey+"\n", 0o600, "secrets.env")
	limit := func(n int) {
		w.config(fmt.Sprintf("timezone: %s\nmodels:\n  limits: [{per: month, money: %d}]\n  providers:\n    paid: {kind: openai, "+
			"base_url: %q, key: PAID_KEY, models: [m], price: {input: 2, cached: 0.5, output: 8}}\n", zone, n, model.BaseURL()))
	}
	limit(3)
	w.start()
	p := w.attach()
	model.Queue(openaitest.Answer{Text: "First.", Input: 1_000_000, Cached: 400_000, Output: 100_000},
		openaitest.Answer{Text: "Second.", Input: 500_000, Output: 1})
	p.ask("one")
	p.say("two")
	p.hearsLike("Second.")
	p.hearsLike("106 % of this month's limit of 3.00 USD for all models is used")
	w.settled()
	w.restart()
	p = w.attach()
	p.say("three")
	p.hearsLike("this month's limit of 3.00 USD for all models is reached (models.limits: {per: month, money: 3}): no model " +
		"is asked until the end of the month (" + zone + ")")
	if n := model.Total(); n != 2 {
		t.Errorf("the model was asked %d times", n)
	}
	contains(t, "usage", w.must("usage", "--by", "model"), "paid/m", "400,000", "3.20 USD")
	contains(t, "/usage", p.ask("/usage"), "Today: 1,600,001 tokens (400,000 from a cache), 3.20 USD", "- paid/m:",
		"this month's limit of 3.00 USD")
	limit(5)
	model.Queue(openaitest.Say("Fourth."))
	w.eventually("the higher limit is in force", func() bool {
		p.say("four")
		return strings.Contains(strings.Join(p.texts(), " "), "Fourth.")
	})
}

// Money is shown in each currency, and a limit counts its own. What a server charges counts
// if it says so, and its list prices are shown, unless the configuration has a price.
func TestMoneyInTwoCurrencies(t *testing.T) {
	t.Parallel()
	w, zone := newWorld(t), noon()
	euros, router := openaitest.New(t), openaitest.New(t)
	for _, s := range []*openaitest.Server{euros, router} {
		s.RequireKey(openaiKey)
		s.OnlyModels("m", "other")
	}
	router.ListAs(modelapitest.Listing{Fields: map[string]any{
		"pricing": map[string]any{"prompt": "0.0000003", "completion": "0.0000012"}, "context_length": 262144,
	}})
	w.write("PAID_KEY="+openaiKey+"\n", 0o600, "secrets.env")
	order := func(first string) {
		w.config(fmt.Sprintf("timezone: %s\nmodels:\n  default: [%s]\n  limits: [{per: month, money: 2, currency: EUR}]\n"+
			"  providers:\n    eu: {kind: openai, base_url: %q, key: PAID_KEY, models: [m], "+
			"price: {input: 3, output: 9, currency: EUR}}\n"+
			"    router: {kind: openai, base_url: %q, key: PAID_KEY, models: [{name: m, context: 65536}, "+
			"{name: other, price: {input: 7, output: 8}}]}\n", zone, first, euros.BaseURL(), router.BaseURL()))
	}
	order("router/m")
	router.Always(openaitest.Answer{Text: "For dollars.", Input: 1_000_000, Cost: 0.25})
	euros.Always(openaitest.Answer{Text: "For euros.", Input: 500_000, Output: 1})
	contains(t, "models list", w.must("models", "list"), "0.3/0.3/1.2 USD", "7/7/8 USD", "3/3/9 EUR", "65,536", "262,144")
	w.start()
	p := w.attach()
	if got := p.ask("one"); got != "For dollars." {
		t.Errorf("got %q", got)
	}
	order("eu/m")
	w.eventually("the other model answers", func() bool { return p.ask("two") == "For euros." })
	w.settled()
	rows := w.usage("--by", "model")
	costs := map[string]map[string]int64{}
	for _, r := range rows {
		costs[r.Name] = r.Costs
	}
	if eu := costs["eu/m"]["EUR"]; eu != 1_500_009 || costs["router/m"]["USD"]%250_000 != 0 || costs["router/m"]["USD"] == 0 ||
		len(costs["eu/m"]) != 1 || len(costs["router/m"]) != 1 {
		t.Errorf("the costs are %v", costs)
	}
	contains(t, "usage", w.must("usage", "--by", "model"), "1.50 EUR", "USD", "1.50 EUR + ")
	p.say("three")
	p.hearsLike("For euros.")
	p.say("four")
	p.hearsLike("this month's limit of 2.00 EUR for all models is reached (models.limits: {per: month, money: 2, currency: EUR})")
}
