package grammar

import "testing"

func TestMemory(t *testing.T) {
	t.Parallel()
	check(t, noon(t), []reading{
		{"remember that the kettle is in the kitchen", "remember: the kettle is in the kitchen"},
		{"Please remember: mother's birthday is on 3 May!", "remember: mother's birthday is on 3 May"},
		{"remember that the shop is open now", "remember: the shop is open now"},
		{"can you remember that I am Anna?", "remember: I am Anna"},
		{`remember "say hi in Telegram"`, "remember: say hi in Telegram"},
		{"remember that I prefer to be written to in Telegram", "prefer: I prefer to be written to in Telegram"},
		{"keep in mind that the car is at the station", "remember: the car is at the station"},
		{"запомни, что чайник стоит на кухне", "remember: чайник стоит на кухне"},
		{"Запомни: код от подъезда 4587", "remember: код от подъезда 4587"},
		{"запомни что у мамы день рождения 3 мая", "remember: у мамы день рождения 3 мая"},
		{"пожалуйста, запомни, что я предпочитаю Telegram", "prefer: я предпочитаю Telegram"},
		{"remember to buy milk", "todo: buy milk"},
		{"remember me", "? no_fact"},
		{"remember that", "? no_fact"},
		{"запомни:", "? no_fact"},
		{"remember that I like tea and remind me tomorrow at 9 to buy some", "? two_commands"},
		{"запомни, что я люблю чай, и напомни завтра в 9 купить его", "? two_commands"},

		{"what do you know about the kettle?", "recall: the kettle"},
		{"What do you remember about my mother's birthday", "recall: my mother's birthday"},
		{"do you know anything about Anna, please", "recall: Anna"},
		{"что ты помнишь о чайнике?", "recall: чайнике"},
		{"что ты знаешь про маму", "recall: маму"},
		{"расскажи, что ты знаешь об Анне", "recall: Анне"},
		{"расскажи что ты помнишь о даче", "recall: даче"},
		{"what do you know about", "? unknown"},
		{"what do you know about it", "? unknown"},
		{"что ты знаешь чайник", "? unknown"},

		{"what do you remember?", "list_memories"},
		{"list memories", "list_memories"},
		{"show me all my memories", "list_memories"},
		{"what do you know about me", "list_memories"},
		{"что ты помнишь?", "list_memories"},
		{"покажи, что ты запомнил", "list_memories"},
		{"что ты знаешь обо мне?", "list_memories"},
		{"покажи воспоминания", "list_memories"},
		{"what do you know", "help"},
		{"что ты знаешь", "help"},

		{"forget m4k2q7", "forget m4k2q7"},
		{"forget about the kettle", "forget the kettle"},
		{"forget that the kettle is in the kitchen", "forget the kettle is in the kitchen"},
		{"please forget what you know about Anna", "forget Anna"},
		{"forget everything", "forget *"},
		{"забудь о чайнике", "forget чайнике"},
		{"забудь, что чайник стоит на кухне", "forget чайник стоит на кухне"},
		{"забудь всё", "forget *"},
		{"забудь всё, что ты знаешь о чайнике", "forget чайнике"},
		{"forget it", "stop"},
		{"forget about it", "stop"},
		{"забудь об этом", "stop"},
		{"forget", "? unknown"},
		{"don't forget to call mom", "todo: call mom"},
		{"remind me in 5 minutes to remember that I like tea", "remind +5m0s: remember that I like tea"},
	})
}
