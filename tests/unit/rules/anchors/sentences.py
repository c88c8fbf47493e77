"""Sentences with the kind of anchor each is, or None.

All were made up by whoever wrote the rules. `WRITTEN_FOR_THE_RULES` was looked at while the rules were made: how they do
on it says that they do what was meant, not how well they do on what people write. `HELD_OUT` was written before the
rules and scored after them, yet by the same hand; whoever changes a rule because of it moves the sentence up.
`UNCERTAIN` is what the rules leave to a model, and what its margins were chosen with.
"""

from __future__ import annotations

from offbook.model.turn import AnchorKind

Labelled = tuple[str, AnchorKind | None]

_IDENTITY = """\
My name is Nina
I am a nurse in Graz
I'm vegetarian
Please call me Jo
I am allergic to peanuts
We are a team of five
I work as a translator
My wife is Clara
I live in Porto
You are my travel assistant
Your name is Ada
Hi, I'm Tom, nice to meet you
I'm a software engineer at a small startup
By the way, my name's Priya
I am the founder of a bakery chain
I'm 34 years old
I'm from Senegal
I was born in Lima
My daughter is called Mia
My pronouns are they/them
I have two kids
I'm a vegan, so no cheese please
Since I'm diabetic, I need to watch my sugar
I work at the city hospital
I speak Portuguese and Dutch
I'm married to a teacher
I'm studying medicine in Vienna
Who am I?
I am Austrian
My boss is Karen Lindqvist
I don't eat pork
I'm retired
Just so you know, I'm colour-blind
You're my coding partner from now on
We're a small family business in Leeds
我叫李明
我是一名护士
Me llamo Carmen
Ich heiße Jonas
Je m'appelle Sophie
Ich bin Lehrerin von Beruf
私の名前は健太です
I go by Max
My birthday is on 5 May
I grew up in Nairobi"""

_NO_IDENTITY = """\
I am going to the store
I am not sure
I'm sorry
I am trying to install it
I am tired of waiting
I am glad that helped
I'm on my way
I'm done for today
I am about to leave
I'm a bit late
I am looking forward to it
I am hungry
I'm here
I am fine, thanks
Do you know who I am talking about?
What is my name in the contract template?
Is my name on the list?
I am afraid that is too expensive
I'm happy with the second draft
I am at the airport
I'm a little worried
I am ready when you are
Call me back later
You are right
You are a genius
You're welcome
My wife is waiting downstairs
I'm in the office until six
I am working on the slides
I am so excited
I work on it tomorrow
My name tag fell off
If I am a member, do I get a discount?
Translate this: I am a doctor
I am surprised by the price
I'm interested in the blue one
I am the one who asked yesterday
我是说明天"""

_CONTRADICTION = """\
But you said the flight leaves at nine
That contradicts what you told me yesterday
Earlier you told me it was free, now it costs ten euros
No, the meeting is on Monday, not Friday
Actually, my flight is at 7:30
I asked for tea, not coffee
You said it was fixed, but it still crashes
That's not what we agreed on
I never said that
I thought you said Tuesday
The docs say the port is 8080, however the config says the port is 9090
These two answers conflict with each other
Sorry, I meant Berlin, not Bern
That doesn't match what the invoice says
Yesterday you recommended the red one and today you recommend the blue one
I told you I'm vegetarian but you booked a steakhouse
That's wrong, the deadline is in June
Wait, you just said the opposite
Your last two answers contradict each other
However, the report from March says we had 40 customers, not 60
This is inconsistent with the earlier numbers
I changed my mind about the hotel
It's not Anna but Hannah
First you said yes, now you say no
The numbers don't add up
I didn't say that
But last time you told me to use the other form
You promised a refund but now you refuse
The email says Thursday but the calendar says Friday
Correction: the budget is 4000, not 3000
In your first message it was 12 km, now it is 15 km
But I already told you that I sold the car
Contrary to what I said, we need three rooms
I'm getting conflicting answers from you
但是你之前说可以退款
Aber du hast gesagt, dass es kostenlos ist
That is the opposite of what you told me
Which is it, Monday or Tuesday?
My mistake, the password hint is the dog's name, not the cat's
You keep saying it is open, however the sign says it is closed"""

_NO_CONTRADICTION = """\
I like it, but it is late
Nothing but trouble
It's expensive but worth it
Not only fast but also cheap
However you want to do it is fine
The food was great, but the service was slow
Click the button but do not close the window
There is a merge conflict in main.py
The conflict in the region goes on
I would love to, but I have no time
As you said, the blue one is better
You said it would rain, thanks for the warning
No contradiction there
I don't want to contradict you
Thanks, but no thanks
Everyone but Tom can come
However hard I try, I enjoy it
Small but cozy
Last but not least, add a title
It was raining, but we went hiking
I can come on Monday but only after five
Could you do the same but in green?
That does not conflict with my plans
Not bad, but make it shorter
I read the book about conflict resolution
We waited before the gate, but it was fun
It is cold but sunny today
He speaks little but listens well
Actually, that sounds great
But of course
Yes but please hurry"""

_TENSION = """\
I'm stuck on the login page
The problem is that the server restarts every hour
I'm confused about the tax form
It still does not work
We can't decide whether to move
I can't figure out how to merge the two tables
The main issue is the cost of shipping
I have a problem with my printer
The build keeps failing
We're having trouble with the payment provider
I don't know how to tell my boss
There is an issue with the export
I'm struggling with the second chapter
The biggest challenge is finding enough volunteers
I'm torn between Lisbon and Porto
I have no idea why the numbers are so low
My laptop won't turn on
The sync isn't working
We still haven't decided on a venue
I keep running into the same error
I'm lost with these settings
The open question is who pays for it
I'm stuck, can you help?
Why does it still not work?
This issue keeps coming back
I am having a hard time sleeping
We ran into a problem during the migration
I don't understand why the test fails
The heating is broken again
My challenge is to keep the kids busy
I'm still stuck
I am confused by the two versions
It's a serious problem for our customers
卡住了，不知道怎么办
问题是服务器总是重启
La impresora no funciona
Das klappt nicht
Ça ne marche pas
うまくいかないです
The app crashes every time I open it
Problem: the cache is never cleared"""

_NO_TENSION = """\
No problem
Not an issue at all
Problem solved
The issue is fixed
That isn't a challenge for me
No problem, take your time
I have no issues with that
The latest issue of the magazine is out
I read it without any problem
Challenge accepted
She solved the problem yesterday
Let me know if there is a problem
Is that a problem?
Please open an issue on GitHub
I love a good challenge
The problem has been resolved
I was stuck in traffic but now I'm home
It's not a problem anymore
I never had a problem with him
We fixed the issue together
Don't hesitate to tell me about any issue
The gum stuck to my shoe
Issue 42 was closed
The coding challenge starts on Friday
What's the problem with a little sugar?
I'm no longer confused
The homework has ten problems
He is good at problem solving
They issue passports on the second floor
The team stuck to the plan
It works now, no more problems
I'm not stuck any more
The bank will issue a new card
Thanks for fixing the issue
I am not confused at all
What was the name of that challenge?
Everything works fine now
If you get stuck, ask Maria
The challenge cup was won by Leeds"""

_HELD_OUT_IDENTITY = """\
Hello, I'm Yusuf
I am an electrician with my own van
We are two brothers who run a food truck
I live on a farm near Toulouse
My husband works at the university
I have celiac disease
You're going to be my Spanish tutor
I'm an only child
Everyone calls me Bea
I used to be a pilot, now I teach physics
I'm left-handed
As a single mother I have little time
My mother tongue is Tamil
I am Jewish
I'll call you Basil
I'm the treasurer of our rowing club
我住在上海
Soy médico en Sevilla
Ich wohne in Hamburg
What am I?"""

_HELD_OUT_CONTRADICTION = """\
But the contract you showed me had a different date
You told me there were no fees and then I got charged
That's the exact opposite of your earlier advice
I said Thursday, you wrote Friday
Hold on, didn't you say it was sold out?
My earlier figure was wrong, it's 52 and not 25
The label says gluten free, but the list of ingredients has wheat
This clashes with the plan from last week
Oops, I meant the second floor, not the third
One page says it opens at nine, another says ten
You can't both be fully booked and have rooms free
That can't be right, we only have three employees
I asked you to keep it short but this is four pages
The summary says we won, however the table shows we lost
Earlier I said yes, but I want to take that back
Pero dijiste que era gratis"""

_HELD_OUT_TENSION = """\
The tap won't stop dripping
We have been going back and forth on the colour for weeks
I can't get the camera to connect
My son refuses to go to school and I don't know what to do
The trouble is that nobody answers
I'm running out of ideas for the title
The invoice is still missing
No matter what I try, the light stays red
I'm stuck between two job offers
Something is wrong with the brakes
The problem with the garden is the shade
We haven't found a solution for the noise
I'm completely confused now
The visa question is still open
Our biggest issue remains the roof
El coche no arranca
Die Heizung funktioniert nicht
这个错误还是没解决"""

_HELD_OUT_NONE = """\
I am leaving in ten minutes
I'm really enjoying this
I am on the phone
I'm so full
My name was misspelled on the cake
You are faster than I expected
I am cooking pasta tonight
I'm good, how are you?
I am using the blue template
We are nearly there
You're an absolute star
I'm a big step closer
I'd go, but it's far
It looks simple but is clever
Do it however you like
She is strict but fair
I would say yes, but ask Tom first
The movie is about a conflict between two brothers
You said it best
Send it to everyone but Leo
We had dinner before the concert, but skipped dessert
Tell me more about the issue of 1968
That solved my problem, thank you
There were no issues on the way
The problem set is due on Monday
She challenged him to a race
Never a problem with this airline
The stamp got stuck to the envelope
Is anyone confused about the rules?
This recipe is no challenge
The issue was closed last week
Happy to help if you have a problem
My sister is on the phone
I am the last one in the queue
Sure, why not
See you on Friday"""

_UNCERTAIN_IDENTITY = """\
I am legally blind in one eye
I'm not a native speaker
I'm not a morning person
I am fluent in Polish
I am overweight
I'm sober since 2019
I am half Irish
I'm gluten free
I am partially sighted
I am hypertensive
I am dairy free
I am Dr. Weiss
I am nonreligious
I am bald
I am mute
I am nearly 40
I am introverted
I am childless
I am ambidextrous"""

_NO_UNCERTAIN_IDENTITY = """\
I'm not an idiot
I'm not a big fan of this font
I am keen to start
I am broke until Friday
I am asleep by ten
I am next in line
I am unsure
I am alone at home
I am behind schedule
I'm under pressure
I am totally fine
I'm half asleep
I am short of cash
I am speechless
I am wide awake
I am fed up
I am hopeful
I am sleepy
I am due at noon
I am low on battery"""

_UNCERTAIN_CONTRADICTION = """\
Actually, the invoice went to a different address
What you told me does not hold
What you said turns out to be false
The earlier price was lower than this one
Not the small one but the large one
I said five, there are six here
Actually I have never been to Rome
Actually I don't have a brother
What was said before is no longer true
That is different from what you told me before
I actually live in the other city
The date you told me is wrong
You told me something else yesterday"""

_NO_UNCERTAIN_CONTRADICTION = """\
Use the old logo instead
Before we start, get coffee
I said hello to him
He told me a story
It used to be blue before
I actually enjoyed it
You told me about the museum
You said so yourself
Let's take the bus instead
I told you it would be fun
Brush your teeth before bed
He said he likes the cake
I actually laughed out loud
Take the stairs instead
My mom told me a joke
We went there yesterday"""

_UNCERTAIN_TENSION = """\
A problem that will not go away
Same issue as yesterday
Another problem with the landlord
This problem again
Big problem at work
A delicate issue that nobody wants to touch
He is the problem
It poses a challenge we cannot meet
Stuck since this morning
Confused by the manual
The door gets stuck in winter
Fixing this issue is beyond me
Still an issue for us
Serious issue with the brakes
The printer is the problem"""

_NO_UNCERTAIN_TENSION = """\
Problem number two is on page six
I wrote an essay on the housing issue
She likes the challenge of climbing
The issue came out in June
It was a fun challenge
We talked about the climate issue
Her issue arrived by mail
Chess problem of the day
The problem was on the exam
My favourite issue has a cat on the cover
He wrote a paper about the traveling salesman problem
The stickers stuck well
The challenge ended in May
Our teacher gave us a math problem
We use problem based learning"""


def _lines(text: str, kind: AnchorKind | None) -> list[Labelled]:
    return [(line, kind) for line in text.splitlines()]


WRITTEN_FOR_THE_RULES: list[Labelled] = [
    *_lines(_IDENTITY, "identity"),
    *_lines(_NO_IDENTITY, None),
    *_lines(_CONTRADICTION, "contradiction"),
    *_lines(_NO_CONTRADICTION, None),
    *_lines(_TENSION, "tension"),
    *_lines(_NO_TENSION, None),
]
HELD_OUT: list[Labelled] = [
    *_lines(_HELD_OUT_IDENTITY, "identity"),
    *_lines(_HELD_OUT_CONTRADICTION, "contradiction"),
    *_lines(_HELD_OUT_TENSION, "tension"),
    *_lines(_HELD_OUT_NONE, None),
]
UNCERTAIN: list[Labelled] = [
    *_lines(_UNCERTAIN_IDENTITY, "identity"),
    *_lines(_NO_UNCERTAIN_IDENTITY, None),
    *_lines(_UNCERTAIN_CONTRADICTION, "contradiction"),
    *_lines(_NO_UNCERTAIN_CONTRADICTION, None),
    *_lines(_UNCERTAIN_TENSION, "tension"),
    *_lines(_NO_UNCERTAIN_TENSION, None),
]
